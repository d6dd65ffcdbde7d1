import type { Mutant } from './mutants.ts'

const OPS = 'apps/payments/test/api-ops-records.test.ts'
const TRUTH = 'apps/payments/test/api-ops-truth.test.ts'
const WORKERS = 'apps/payments/test/payments-workers.faults.test.ts'
const FOUND = 'apps/payments/payments/found.ts'
const VISIBLE = 'apps/payments/payments/visible.ts'
const DECISIONS = 'apps/payments/payments/decisions.ts'

/** Faults in what the payment service makes of the word of an operator: money that is posted twice, or to the wrong payment. */
export const DECISION_MUTANTS: readonly Mutant[] = [
  {
    name: 'operator: take any text for what the processor calls a charge',
    file: FOUND,
    edits: [{ from: 'if (gateway.ids[kind].test(gatewayId)) return', to: 'if (gateway.name) return' }],
    tests: [OPS],
    only: 'is not decided while the processor',
  },
  {
    name: 'operator: take the charge of one payment for that of another',
    file: FOUND,
    edits: [{ from: 'told === null || told === own', to: 'told === null || own !== null' }],
    tests: [TRUTH],
    only: 'names another call',
  },
  {
    name: 'operator: take a charge of another amount',
    file: FOUND,
    edits: [{ from: 'if (amount !== held.amount || ', to: 'if (' }],
    tests: [TRUTH],
    only: 'taken in part, or given back',
  },
  {
    name: 'operator: decide about a charge that the processor could not be asked about',
    file: 'apps/payments/payments/asking.ts',
    edits: [{ from: 'if (unchecked) return null', to: 'return null' }],
    tests: [OPS],
    only: 'is not decided while the processor',
  },
  {
    name: 'operator: hold money without an end',
    file: FOUND,
    edits: [{ from: 'if (told !== null) return told', to: 'return told' }],
    tests: [OPS],
    only: 'is not decided while the processor',
  },
  {
    name: 'operator: declare not executed what the processor has answered durably',
    file: DECISIONS,
    edits: [{ from: `decision === 'not_executed' &&`, to: `decision === 'park' &&` }],
    tests: [WORKERS],
    only: 'parks its record with the name',
  },
  {
    name: 'operator: settle a capture or a refund that another decision has settled meanwhile',
    file: 'apps/payments/payments/sql-unsettled.ts',
    edits: [{ from: `'p, h',`, to: `'p',` }],
    tests: [OPS],
    only: 'that two operators decide at once',
  },
  {
    name: 'payments: try for ever to settle a charge that another payment has',
    file: 'apps/payments/payments/workers.ts',
    edits: [
      {
        from: `if (inDoubt) await parkTaken(desk, pool, record, 'payments.marker')
`,
        to: '\n',
      },
    ],
    tests: [WORKERS],
    only: 'parks its record with the name',
  },
  {
    name: 'operator: settle a payment in full with a charge that was taken in part',
    file: FOUND,
    edits: [{ from: 'if (taken !== amount)\n', to: 'if (taken > amount)\n' }],
    tests: [TRUTH],
    only: 'taken in part, or given back',
  },
  {
    name: 'operator: take a charge that was given back',
    file: FOUND,
    edits: [
      {
        from: `if (givenBack > 0)
`,
        to: `if (givenBack > taken)
`,
      },
    ],
    tests: [TRUTH],
    only: 'taken in part, or given back',
  },
  {
    name: 'operator: take a charge that was taken already for a hold',
    file: FOUND,
    edits: [{ from: 'if (taken === 0 && held === amount) return', to: 'if (held <= amount) return' }],
    tests: [TRUTH],
    only: 'is no hold',
  },
  {
    name: 'operator: take the charge of another call of ours',
    file: FOUND,
    edits: [{ from: ' || !called)', to: ')' }],
    tests: [TRUTH],
    only: 'names another call',
  },
  {
    name: 'operator: declare not executed what the processor shows under our key',
    file: 'apps/payments/payments/shown.ts',
    edits: [{ from: `status === 'open' || held > 0 || taken > givenBack`, to: `status === 'open'` }],
    tests: [TRUTH],
    only: 'cannot be declared not executed',
  },
  {
    name: 'operator: book a capture that the processor does not show',
    file: 'apps/payments/payments/shown.ts',
    edits: [{ from: 'if (asked !== null && !isCaptured(', to: 'if (asked === null && !isCaptured(' }],
    tests: [TRUTH],
    only: 'is what the processor shows of it',
  },
  {
    name: 'operator: leave no way to end a request whose charge another one has',
    file: DECISIONS,
    edits: [
      {
        from: `&&
    !(await isOfAnother(desk, pool, record, recoveryPoint))`,
        to: '',
      },
    ],
    tests: [WORKERS],
    only: 'parks its record with the name',
  },
  {
    name: 'operator: declare not executed what the processor may show yet',
    file: VISIBLE,
    edits: [{ from: 'if (leftMs > 0) throw', to: 'if (leftMs > gateway.visibleWithinMs) throw' }],
    tests: [TRUTH],
    only: 'no operator can say that a request was not carried out',
  },
  {
    name: 'operator: declare a call void that the processor may show yet',
    file: DECISIONS,
    edits: [
      {
        from: 'if (given.processor_statement === undefined) await',
        to: 'if (given.fence !== undefined) await',
      },
    ],
    tests: [TRUTH],
    only: 'no operator can say that a request was not carried out',
  },
  {
    name: 'operator: take the word that a request may run again for a proof that it was not executed',
    file: VISIBLE,
    edits: [{ from: 'allowed?.fence === record?.fence ?', to: 'allowed === null ?' }],
    tests: [TRUTH],
    only: 'a written statement of the processor decides',
  },
  {
    name: 'operator: take the statement of a processor against what the processor shows',
    file: 'apps/payments/payments/shown.ts',
    edits: [{ from: 'if (shown === undefined) continue', to: 'if (shown === undefined || stated) continue' }],
    tests: [TRUTH],
    only: 'a statement does not stand against',
  },
  {
    name: 'operation: forget when the attempt that parks a record has sent a call',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [
      {
        from: `\${SENT_UNTIL}, waits_for = $8, \${WAITS_STEP}, retention_ms`,
        to: `waits_for = $8, \${WAITS_STEP}, retention_ms`,
      },
    ],
    tests: ['test/operations/in-doubt-shown.test.ts'],
    only: 'until when a call may have been sent',
  },
]
