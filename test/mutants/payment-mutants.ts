import type { Mutant } from './mutants.ts'

const DUPLICATES = 'apps/payments/test/duplicates.test.ts'

/** Faults in the payment service: what would charge twice, or keep others out for nothing. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'let a look decide about duplicates of a payment, and no index',
    file: 'apps/payments/migrations/0007_duplicates.sql',
    edits: [
      { from: 'CREATE UNIQUE INDEX payments_one_intent', to: 'CREATE INDEX payments_one_intent' },
      { from: 'CREATE UNIQUE INDEX payments_unique_reference', to: 'CREATE INDEX payments_unique_reference' },
    ],
    tests: [DUPLICATES],
    only: 'are one charge',
  },
  {
    name: 'make room for a duplicate and leave the earlier request to be resumed',
    file: 'apps/payments/payments/duplicates.ts',
    edits: [{ from: 'if (!(await giveUp(tx,', to: 'if (record.key === null && !(await giveUp(tx,' }],
    tests: [DUPLICATES],
    only: 'proved not to have been executed',
  },
  {
    name: 'make room for a duplicate of what may have been charged',
    file: 'apps/payments/payments/sql.ts',
    edits: [
      {
        from: `const LIVE = \`p.status NOT IN ('failed', 'canceled', 'expired')\``,
        to: `const LIVE = \`p.status NOT IN ('failed', 'canceled', 'expired', 'unknown')\``,
      },
    ],
    tests: [DUPLICATES],
    only: 'stands while nobody knows',
  },
  {
    name: 'store the refusal of a duplicate under the new key',
    file: 'apps/payments/problems.ts',
    edits: [{ from: `duplicate_intent: {\n    status: 409,`, to: `duplicate_intent: {\n    status: 422,` }],
    tests: [DUPLICATES],
    only: 'is not stored',
  },
  {
    name: 'forget the intent of a payment while its key replays',
    file: 'apps/payments/payments/duplicates.ts',
    edits: [
      { from: 'retention_ms + duplicate_margin_ms,', to: '0,' },
      { from: 'key_lifetime_ms + duplicate_margin_ms,', to: '0,' },
    ],
    tests: [DUPLICATES],
    only: 'no shorter than keys replay',
  },
]
