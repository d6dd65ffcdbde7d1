import type { Mutant } from './mutants.ts'

const RESERVATIONS = 'apps/payments/test/reservations.faults.test.ts'
const OPS = 'apps/payments/test/api-ops-records.test.ts'
const DUPLICATES = 'apps/payments/test/duplicates.faults.test.ts'
const STORAGE = 'apps/payments/test/hostile-storage.faults.test.ts'

/** Faults in the payment service: what would charge twice, or keep others out for nothing. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'let a look decide about duplicates of a payment, and no index',
    file: 'apps/payments/migrations/0009_forgotten_payers.sql',
    edits: [{ from: 'CREATE UNIQUE INDEX payments_one_intent', to: 'CREATE INDEX payments_one_intent' }],
    tests: [DUPLICATES],
    only: 'by its reference',
  },
  {
    name: 'let a look decide about unique references of payments, and no index',
    file: 'apps/payments/migrations/0007_duplicates.sql',
    edits: [
      { from: 'CREATE UNIQUE INDEX payments_unique_reference', to: 'CREATE INDEX payments_unique_reference' },
    ],
    tests: [DUPLICATES],
    only: 'by its unique_reference',
  },
  {
    name: 'duplicates: let one that refuses overlook one that is being made and does not',
    file: 'apps/payments/payments/sql.ts',
    edits: [{ from: 'SELECT CASE WHEN $8::text IS NOT NULL', to: 'SELECT CASE WHEN $8::text IS NULL' }],
    tests: [DUPLICATES],
    only: 'wait for one that is being made and refuses no others',
  },
  {
    name: 'duplicates: clear away one earlier payment at each look',
    file: 'apps/payments/limits.ts',
    edits: [{ from: 'duplicatesClearedMax: 200', to: 'duplicatesClearedMax: 1' }],
    tests: [DUPLICATES],
    only: 'makes room together with all others',
  },
  {
    name: 'quota: count a write whose handler has refused it',
    file: 'apps/payments/api/index.ts',
    edits: [
      {
        from: 'if (request.idempotency !== undefined && didNothing(error))',
        to: 'if (request.idempotency === null)',
      },
    ],
    tests: [STORAGE],
    only: 'counts what begins a write',
  },
  {
    name: 'quota: send clients away for a day where a request under way may give its points back',
    file: 'apps/payments/admission.ts',
    edits: [
      {
        from: 'if (verdict.allowed) provisional.hold(asked, subject)',
        to: 'if (verdict.allowed) return verdict',
      },
    ],
    tests: [STORAGE],
    only: 'have others come back soon',
  },
  {
    name: 'quota: have clients come back every second for points that are taken',
    file: 'apps/payments/admission.ts',
    edits: [{ from: 'over: (write) => provisional.over(write)', to: 'over: () => {}' }],
    tests: [STORAGE],
    only: 'have others come back soon',
  },
  {
    name: 'quota: count a payment whose card was tried too often',
    file: 'apps/payments/admission.ts',
    edits: [{ from: 'if (!card.allowed) await day.giveBack()\n', to: '\n' }],
    tests: [STORAGE],
    only: 'counts what begins a write',
  },
  {
    name: 'quota: count a payment that the operation refuses as a duplicate',
    file: 'apps/payments/tries.ts',
    edits: [{ from: 'await Promise.all([day(), card?.()])', to: 'await card?.()' }],
    tests: [STORAGE],
    only: 'counts what begins a write',
  },
  {
    name: 'velocity: count tries of a card that the processor has not made',
    file: 'apps/payments/tries.ts',
    edits: [
      {
        from: `error.code === 'not_executed') this.#tried = false`,
        to: `error.code === 'not_executed') this.#tried = true`,
      },
    ],
    tests: [STORAGE],
    only: 'is one write, however often',
  },
  {
    name: 'quota: count a write for each of its attempts',
    file: 'apps/payments/tries.ts',
    edits: [{ from: 'if (!this.#isNew) await this.#taken?.day()', to: '' }],
    tests: [STORAGE],
    only: 'is one write, however often',
  },
  {
    name: 'quota: do not count a write that was not executed',
    file: 'apps/payments/tries.ts',
    edits: [{ from: 'if (!this.#isNew) await this.#taken?.day()', to: 'await this.#taken?.day()' }],
    tests: [STORAGE],
    only: 'is one write, however often',
  },
  {
    name: 'processor: let wrong signatures be as many as an address likes',
    file: 'apps/payments/api/gateway-webhooks.ts',
    edits: [{ from: 'const giveBack = strangers.take(request)', to: 'const giveBack = () => {}' }],
    tests: ['apps/payments/test/gateway-webhooks.test.ts'],
    only: 'whose signature is wrong',
  },
  {
    name: 'webhooks: two endpoints for one receiver, by an empty fragment',
    file: 'src/webhooks/target.ts',
    edits: [{ from: `  url.hash = ''\n`, to: '' }],
    tests: ['test/webhooks/addresses.test.ts'],
    only: 'has one spelling',
  },
  {
    name: 'start: overlook a password of the database that stands in the query',
    file: 'apps/payments/production.ts',
    edits: [{ from: `, ...searchParams.getAll('password')]`, to: `, ...searchParams.getAll('')]` }],
    tests: ['apps/payments/test/config.test.ts'],
    only: 'refuses one value for two secrets',
  },
  {
    name: 'let one charge at the processor belong to two payments',
    file: 'apps/payments/migrations/0008_gateway_ids.sql',
    edits: [{ from: 'CREATE UNIQUE INDEX payments_gateway_id', to: 'CREATE INDEX payments_gateway_id' }],
    tests: [OPS],
    only: 'is not executed as what another',
  },
  {
    name: 'let one refund at the processor belong to two refunds',
    file: 'apps/payments/migrations/0008_gateway_ids.sql',
    edits: [{ from: 'CREATE UNIQUE INDEX refunds_gateway_id', to: 'CREATE INDEX refunds_gateway_id' }],
    tests: [OPS],
    only: 'is not executed as what another',
  },
  {
    name: 'take evidence that names what another payment is called',
    file: 'apps/payments/payments/decisions.ts',
    edits: [
      {
        from: 'if (owner !== null) throw gatewayIdTaken(owner)',
        to: 'if (owner?.owner === record.key) throw gatewayIdTaken(owner)',
      },
    ],
    tests: [OPS],
    only: 'is not executed as what another',
  },
  {
    name: 'reconcile: forget the second of ours with one id at the processor',
    file: 'apps/payments/reconcile/compare.ts',
    edits: [{ from: 'if (others.length > 0) from.set(name, others)\n  else ', to: '' }],
    tests: ['apps/payments/reconcile/compare.test.ts'],
    only: 'two books',
  },
  {
    name: 'payer: forget it and let the same order be charged again',
    file: 'apps/payments/payments/sql-unsettled.ts',
    edits: [{ from: 'intent_payer = coalesce(p.intent_payer, p.payer)', to: `intent_payer = ''` }],
    tests: [DUPLICATES],
    only: 'is no reason to charge',
  },
  {
    name: 'payer: keep the copy for ever by which payments are compared',
    file: 'apps/payments/payments/sql-unsettled.ts',
    edits: [
      { from: `SET intent_payer = '', intent_payer_until = NULL`, to: 'SET intent_payer_until = NULL' },
    ],
    tests: [DUPLICATES],
    only: 'is in no payment any more',
  },
  {
    name: 'ready: say so of a database that only reads',
    file: 'apps/payments/api/health.ts',
    edits: [{ from: `current_setting('transaction_read_only') = 'off' AND `, to: '' }],
    tests: ['apps/payments/test/database-away.faults.test.ts'],
    only: 'with a database that only reads',
  },
  {
    name: 'cards: repeat a card number as the name of a parameter',
    file: 'apps/payments/api/invalid.ts',
    edits: [{ from: 'return shownField(names)', to: `return shownField([]) + names.join('.')` }],
    tests: ['apps/payments/test/hostile-cards.test.ts'],
    only: 'is not repeated as the name',
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
    name: 'take what a request holds that may still be executed',
    file: 'apps/payments/payments/reservations.ts',
    edits: [{ from: 'operation === op.operation && key === op.key', to: 'key !== null' }],
    tests: [RESERVATIONS],
    only: 'keeps what it holds',
  },
  {
    name: 'take what a request holds and leave it to be resumed',
    file: 'apps/payments/payments/giving-up.ts',
    edits: [
      {
        from: 'reply,\n      tx,\n    })',
        to: 'reply: { ...reply, status: 99 } }).catch(() => ({ givenUp: true }))',
      },
    ],
    tests: [RESERVATIONS],
    only: 'gives way',
  },
  {
    name: 'decide that a capture was executed and post nothing',
    file: 'apps/payments/payments/decisions.ts',
    edits: [
      {
        from: 'const settled = await settleTold(tx, settling, record, told)',
        to: 'const settled = told.executed ? problemReply("internal") : await settleTold(tx, settling, record, told)',
      },
    ],
    tests: [RESERVATIONS],
    only: 'settles it and posts it',
  },
  {
    name: 'settle what a person told outside of the commit of the decision',
    file: 'apps/payments/payments/decisions.ts',
    edits: [{ from: 'await replyOf(tx, settling,', to: 'await replyOf(pool, settling,' }],
    tests: [RESERVATIONS],
    only: 'comes too late',
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
      { from: 'retentionMs + duplicateMarginMs,', to: '0,' },
      { from: 'keyLifetimeMs + duplicateMarginMs', to: '0,' },
    ],
    tests: [DUPLICATES],
    only: 'no shorter than keys replay',
  },
]
