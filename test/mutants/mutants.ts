import { ADAPTER_MUTANTS } from './adapter-mutants.ts'
import { ATTACK_MUTANTS } from './attack-mutants.ts'
import { BACKGROUND_MUTANTS } from './background-mutants.ts'
import { BOUNDARY_MUTANTS } from './boundary-mutants.ts'
import type { FaultyFile } from './build-in.ts'
import { CLI_MUTANTS } from './cli-mutants.ts'
import { CLIENT_MUTANTS } from './client-mutants.ts'
import { COME_BACK_MUTANTS } from './come-back-mutants.ts'
import { COPIES_MUTANTS } from './copies-mutants.ts'
import { CRASH_MUTANTS } from './crash-mutants.ts'
import { DECISION_MUTANTS } from './decision-mutants.ts'
import { DISCARD_MUTANTS } from './discard-mutants.ts'
import { DOOR_MUTANTS } from './door-mutants.ts'
import { DOUBT_KEPT_MUTANTS } from './doubt-kept-mutants.ts'
import { HANDLER_MUTANTS } from './handler-mutants.ts'
import { INVALID_MUTANTS } from './invalid-mutants.ts'
import { ISSUED_KEY_MUTANTS } from './issued-key-mutants.ts'
import { KEY_MUTANTS } from './key-mutants.ts'
import { LIMIT_MUTANTS } from './limit-mutants.ts'
import { MISCONFIGURED_MUTANTS } from './misconfigured-mutants.ts'
import { OBSERVE_MUTANTS } from './observe-mutants.ts'
import { OPERATION_CALL_MUTANTS } from './operation-call-mutants.ts'
import { OPERATION_MUTANTS } from './operation-mutants.ts'
import { ORM_MUTANTS } from './orm-mutants.ts'
import { OUTBOX_MUTANTS } from './outbox-mutants.ts'
import { PAYMENT_MUTANTS } from './payment-mutants.ts'
import { REPLY_MUTANTS } from './reply-mutants.ts'
import { REQUEST_MUTANTS } from './request-mutants.ts'
import { SERVICE_MUTANTS } from './service-mutants.ts'
import { TRANSACTION_MUTANTS } from './transaction-mutants.ts'
import { TRUTH_MUTANTS } from './truth-mutants.ts'
import { VOID_CALL_MUTANTS } from './void-call-mutants.ts'
import { WEBHOOK_MUTANTS } from './webhook-mutants.ts'

/** A fault that somebody might build in one day: a small change of one file, and the tests that must notice. */
export interface Mutant extends FaultyFile {
  /** Files of tests, of which at least one must fail. */
  readonly tests: readonly string[]
  /** Part of the names of the tests that are run, as a regular expression; all of them where nothing is said. */
  readonly only?: string
  /** The configuration of vitest, where it is not the usual one. */
  readonly config?: string
}

const CONFORMANCE = 'src/store/postgres/conformance.test.ts'

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'complete a strict transaction that was not used',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [{ from: 'this.#script.strict === true && this.tx.unused', to: 'this.link.lost === this' }],
    tests: ['test/contract/unused-tx.test.ts'],
  },
  {
    name: 'tell nobody that a transaction was not used',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [{ from: '...(this.tx.unused && { unused: true })', to: '' }],
    tests: ['test/contract/unused-tx.test.ts'],
  },
  {
    name: 'drop the unique constraint',
    file: 'migrations/0001_records.sql',
    edits: [
      {
        from: `PRIMARY KEY (account, operation, key),
  CONSTRAINT records_sound`,
        to: `UNIQUE (account, operation, key, attempt_id),
  CONSTRAINT records_sound`,
      },
      {
        from: `  CONSTRAINT attempts_record FOREIGN KEY (account, operation, key) REFERENCES records ON DELETE CASCADE,
`,
        to: ``,
      },
    ],
    tests: [CONFORMANCE],
    only: 'lets the first claim run',
  },
  {
    name: 'ignore who owns a record',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [
      {
        from: `fence = $4::bigint`,
        to: `fence >= $4::bigint`,
      },
      { from: ` AND attempt_id = $5::uuid`, to: ` AND $5 <> ''` },
    ],
    tests: [CONFORMANCE],
    only: 'turns the late owner away',
  },
  {
    name: 'skip the fingerprint',
    file: 'src/record/transitions.ts',
    edits: [
      {
        from: `if (!claim.sameRequest) return { kind: 'key_reused' }`,
        to: ``,
      },
    ],
    tests: ['src/record'],
  },
  {
    name: 'treat a lost COMMIT as rolled back',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [
      {
        from: `return { end: 'in_doubt', reply: written, error: byServer ?? this.connections.translate(error) }`,
        to: `return { end: 'rerun', error: this.connections.translate(error) }`,
      },
    ],
    tests: ['test/torture/lost-commit.test.ts'],
  },
  {
    name: 'treat a lost COMMIT as committed',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [
      {
        from: `return { end: 'in_doubt', reply: written, error: byServer ?? this.connections.translate(error) }`,
        to: `return { end: 'committed', reply: written }`,
      },
    ],
    tests: ['test/torture/lost-commit.test.ts'],
  },
  {
    name: 'trust the first look at a lost COMMIT',
    file: 'src/store/postgres/settle.ts',
    edits: [
      {
        from: `if (await writeRetryable(connections, statements, tombstone, COMMIT_LOST)) return 'rolled_back'`,
        to: ``,
      },
      {
        from: `if (row === undefined) return null`,
        to: `if (row === undefined) return 'rolled_back'`,
      },
    ],
    tests: ['test/torture/late-commit.test.ts'],
  },
  {
    name: 'leave nothing that stops a late COMMIT',
    file: 'src/store/postgres/settle.ts',
    edits: [
      {
        from: `if (await writeRetryable(connections, statements, tombstone, COMMIT_LOST)) return 'rolled_back'`,
        to: `if (tombstone !== null) return 'rolled_back'`,
      },
    ],
    tests: [CONFORMANCE],
    only: 'tells a committed attempt',
  },
  {
    name: 'let a query through that comes after the end of its transaction',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: `    this.#over = true\n`, to: `` }],
    tests: ['test/contract/misuse.test.ts'],
    only: 'tx after the function',
  },
  {
    name: 'commit without waiting for queries that nobody awaits',
    file: 'src/store/postgres/tx.ts',
    edits: [
      {
        from: `    while (this.#asked !== this.#answered) await this.#tail`,
        to: `    await Promise.resolve()`,
      },
    ],
    tests: ['test/contract/misuse.test.ts'],
    only: 'that nobody awaits',
  },
  {
    name: 'let COMMIT go through when the record conflicts',
    file: 'src/store/postgres/sql/claim.ts',
    edits: [
      {
        from: `clock_timestamp() + \${interval('$9')}, $10, $11, $12, $13, $14, $15::"char")\``,
        to: `clock_timestamp() + \${interval('$9')}, $10, $11, $12, $13, $14, $15::"char") ON CONFLICT DO NOTHING\``,
      },
    ],
    tests: [CONFORMANCE],
    only: 'conflicts with a record that came first',
  },
  {
    name: 'commit over a retryable record without looking whether it was taken',
    file: 'src/store/postgres/transact.ts',
    edits: [
      {
        from: `rows === 0 ? { end: 'conflict' } : null,`,
        to: `rows < 0 ? { end: 'conflict' } : null,`,
      },
    ],
    tests: [CONFORMANCE],
    only: 'with a higher fence, once',
  },
  {
    name: 'look a key up without its account',
    file: 'src/store/postgres/sql/look.ts',
    edits: [
      {
        from: `WHERE account = k.account AND operation`,
        to: `WHERE operation`,
      },
    ],
    tests: [CONFORMANCE],
    only: 'keeps accounts and operations apart',
  },
  {
    name: 'take a lease that has not run out',
    file: 'src/record/transitions.ts',
    edits: [
      {
        from: `if (record.leaseUntil > now) {`,
        to: `if (record.leaseUntil > now + 1e9) {`,
      },
    ],
    tests: ['src/record'],
  },
  {
    name: 'run although another holds the exclusive lock',
    file: 'src/store/postgres/transact.ts',
    edits: [
      {
        from: `if (rows.at(-2)![0]![0] !== 't') return { end: 'busy' }`,
        to: ``,
      },
    ],
    tests: [CONFORMANCE],
    only: 'says busy to a second exclusive',
  },
  {
    name: 'set no bound on idle transactions',
    file: 'src/store/postgres/connections.ts',
    edits: [
      {
        from: `...(within(idleMs!, idleInTransactionMaxMs) ? [] : [this.#setIdle]),`,
        to: ``,
      },
    ],
    tests: ['test/torture/vanished.test.ts'],
  },
  {
    name: 'fail open when the lookup fails',
    file: 'src/protect/transaction.ts',
    edits: [
      {
        from: `const seen = await store.look(request.id)
    crashPoint('transaction.look.after')`,
        to: `const seen = await store.look(request.id).catch(() => null)
    crashPoint('transaction.look.after')`,
      },
    ],
    tests: ['test/contract/store-down.test.ts'],
  },
  {
    name: 'put the version of an operation into derived keys',
    file: 'src/key/derived.ts',
    edits: [
      {
        from: `encodeParts(DOMAIN, account, operation, key, step)`,
        to: `encodeParts(DOMAIN, account, operation === '' ? '' : of.operation, key, step)`,
      },
    ],
    tests: ['src/key/derived.test.ts'],
  },
  {
    name: 'leave the path parameters out of the fingerprint',
    file: 'src/fingerprint/prepare.ts',
    edits: [
      {
        from: `    encodePathParams(request.pathParams) +
`,
        to: ``,
      },
    ],
    tests: ['src/fingerprint/prepare.test.ts'],
  },
  {
    name: 'let a savepoint of one within undo another',
    file: 'src/store/postgres/busy.ts',
    edits: [
      {
        from: `if (around !== undefined && !around.contains(tx, options)) throw new OnlyonceError('within_busy')`,
        to: ``,
      },
    ],
    tests: ['test/contract/within-together.test.ts'],
  },
  {
    name: 'let a savepoint of within undo the fence of a lock',
    file: 'src/store/postgres/fences.ts',
    edits: [{ from: 'for (const ask of fences) {', to: 'for (const ask of fences.slice(0, 0)) {' }],
    tests: ['test/contract/fences.test.ts'],
  },
  {
    name: 'let a setting of the role make a text of what is not there',
    file: 'src/store/postgres/sql/group.ts',
    edits: [{ from: "set_config('array_nulls', 'on', true)", to: "set_config('array_nulls', 'off', true)" }],
    tests: ['test/contract/array-nulls.test.ts'],
  },
  ...TRANSACTION_MUTANTS,
  ...MISCONFIGURED_MUTANTS,
  ...OBSERVE_MUTANTS,
  ...OUTBOX_MUTANTS,
  ...PAYMENT_MUTANTS,
  ...DOUBT_KEPT_MUTANTS,
  ...DECISION_MUTANTS,
  ...DISCARD_MUTANTS,
  ...DOOR_MUTANTS,
  ...WEBHOOK_MUTANTS,
  ...KEY_MUTANTS,
  ...LIMIT_MUTANTS,
  ...CLI_MUTANTS,
  ...CLIENT_MUTANTS,
  ...COME_BACK_MUTANTS,
  ...HANDLER_MUTANTS,
  ...INVALID_MUTANTS,
  ...ISSUED_KEY_MUTANTS,
  ...BOUNDARY_MUTANTS,
  ...REPLY_MUTANTS,
  ...REQUEST_MUTANTS,
  ...SERVICE_MUTANTS,
  ...BACKGROUND_MUTANTS,
  ...COPIES_MUTANTS,
  ...ORM_MUTANTS,
  ...CRASH_MUTANTS,
  ...OPERATION_MUTANTS,
  ...OPERATION_CALL_MUTANTS,
  ...ADAPTER_MUTANTS,
  ...ATTACK_MUTANTS,
  ...TRUTH_MUTANTS,
  ...VOID_CALL_MUTANTS,
]
