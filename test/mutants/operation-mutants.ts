import type { Mutant } from './mutants.ts'

const RUN = 'src/operation/run.ts'
const ENDS = 'src/operation/conclude.ts'
const HOLD = 'src/operation/hold.ts'
const STEPS = 'src/operation/steps.ts'
const SQL = 'src/store/postgres/sql/operations.ts'

const SAGA = 'test/operations/saga.test.ts'
const VERSIONS = 'test/operations/versions.test.ts'
const WORKERS = 'test/operations/workers.test.ts'
const OWNERS = 'test/operations/lost-ownership.faults.test.ts'
const CALLS = 'test/operations/call-results-kept.test.ts'
const TAKEN = 'test/operations/takeover.test.ts'
const UNDONE = 'test/operations/undone-in-reverse.test.ts'

/** Faults in durable operations: who owns one, what is durable of it, what is left of it, and how it is undone. */
export const OPERATION_MUTANTS: readonly Mutant[] = [
  {
    name: 'let a step that is not awaited end the process',
    file: 'src/operation/given-steps.ts',
    edits: [{ from: `    given.keepQuiet()\n`, to: `` }],
    tests: ['test/operations/forgotten-await.test.ts'],
    only: 'the process lives',
  },
  {
    name: 'complete an operation though a step failed that it did not await',
    file: 'src/operation/given-steps.ts',
    edits: [
      { from: `end.status === 'rejected' && !this`, to: `end.status !== 'fulfilled' && false && !this` },
    ],
    tests: ['test/operations/forgotten-await.test.ts'],
    only: 'has thrown',
  },
  {
    name: 'operation: take over what has been taken since it was seen',
    file: SQL,
    edits: [
      {
        from: `AND fence = $4::bigint AND state = $5\n    AND (state`,
        to: `AND fence >= $4::bigint AND state = $5\n    AND (state`,
      },
    ],
    tests: [TAKEN],
    only: 'taken since',
  },
  {
    name: 'operation: take a look after the deadline for a moment at which something was sent',
    file: SQL,
    edits: [
      {
        from: `CASE WHEN deadline_at < attempted_at THEN coalesce(sent_until, clock_timestamp()) ELSE clock_timestamp() END`,
        to: `clock_timestamp()`,
      },
    ],
    tests: ['test/operations/schedule.test.ts'],
    only: 'settle window',
  },
  {
    name: 'operation: take over from an owner that lives',
    file: SQL,
    edits: [{ from: `\n    AND (state <> 'in_progress' OR lease_until <= clock_timestamp())`, to: `` }],
    tests: [TAKEN],
    only: 'owner lives',
  },
  {
    name: 'operation: take over a version without its code',
    file: SQL,
    edits: [
      {
        from: `(version IS NULL OR version = ANY ($17::text[]))`,
        to: `(version IS NULL OR $17::text[] <> '{}')`,
      },
    ],
    tests: [VERSIONS],
    only: 'lacks the version',
  },
  {
    name: 'operation: let the reconciler take a plain handler in doubt',
    file: SQL,
    edits: [
      {
        from: `WHERE look_at <= now() AND state = 'unknown'
  AND (operation, version) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND \${KIND} = 'o'`,
        to: `WHERE (look_at IS NULL OR look_at <= now()) AND state = 'unknown'
  AND (operation = ANY ($1::text[]) OR version = ANY ($2::text[]))`,
      },
      { from: `OR \${PREVIOUS_KIND} = 'o')`, to: `OR true)` },
    ],
    tests: [TAKEN],
    only: 'plain handler',
  },
  {
    name: 'operation: let the completer take a plain handler whose owner vanished',
    file: SQL,
    edits: [
      {
        from: `lease_until <= now() - \${interval('$3')}
  AND (operation, version) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND \${KIND} = 'o'`,
        to: `lease_until <= now() - \${interval('$3')}
  AND (operation = ANY ($1::text[]) OR version = ANY ($2::text[]))`,
      },
      { from: `    AND (state IN ('retryable', 'expired') OR \${PREVIOUS_KIND} = 'o')\n`, to: `` },
    ],
    tests: [TAKEN],
    only: 'plain handler',
  },
  {
    name: 'operation: run a step without locking the fence of its owner',
    file: 'src/store/postgres/operations.ts',
    edits: [{ from: `return this.#transact(lock, bounds`, to: `return this.#transact(() => [], bounds` }],
    tests: [OWNERS],
    only: 'two completers|not the record of its old owner',
  },
  {
    name: 'operation: let a late write take later steps back',
    file: SQL,
    edits: [
      {
        from: `WHERE \${OWNED} AND coalesce(points, 0) < $7::smallint RETURNING ctid`,
        to: `WHERE \${OWNED} RETURNING ctid`,
      },
    ],
    tests: [OWNERS],
    only: 'takes no later ones back',
  },
  {
    name: 'operation: run a step again whose COMMIT was done and not answered',
    file: 'src/store/postgres/operations.ts',
    edits: [{ from: `        if (isDone(row, owned, written)) return 'committed'\n`, to: `` }],
    tests: ['test/operations/cut-at-commit.faults.test.ts'],
  },
  {
    name: 'operation: give signs of life while a step holds the row',
    file: HOLD,
    edits: [{ from: `    this.#heartbeat?.pause()\n`, to: `` }],
    tests: [TAKEN],
    only: 'signs of life',
  },
  {
    name: 'operation: do not notice a step of another name',
    file: STEPS,
    edits: [{ from: `entry.name !== name || entry.kind !== kind`, to: `entry.kind !== kind` }],
    tests: [VERSIONS],
    only: 'is noticed, and parked',
  },
  {
    name: 'operation: do not notice a step of another kind',
    file: STEPS,
    edits: [{ from: `entry.name !== name || entry.kind !== kind`, to: `entry.name !== name` }],
    tests: [VERSIONS],
    only: 'of another kind',
  },
  {
    name: 'operation: do not notice durable steps that the code never asks for',
    file: RUN,
    edits: [
      { from: `    if (unvisited !== null) {\n`, to: `    if (unvisited !== null && 'error' in end) {\n` },
    ],
    tests: [VERSIONS],
    only: 'an end before the durable steps',
  },
  {
    name: 'operation: leave it retryable after a call took effect',
    file: ENDS,
    edits: [
      {
        from: `if (steps.foreign || steps.undoing !== null || unproved)`,
        to: `if (steps.undoing !== null || unproved)`,
      },
    ],
    tests: [WORKERS],
    only: 'keeps the result of a call',
  },
  {
    name: 'operation: leave it retryable while it is half undone',
    file: ENDS,
    edits: [
      {
        from: `if (steps.foreign || steps.undoing !== null || unproved)`,
        to: `if (steps.foreign || unproved)`,
      },
    ],
    tests: ['test/operations/undone-once.test.ts'],
    only: 'never comes back',
  },
  {
    name: 'operation: leave it retryable though an earlier attempt may have called',
    file: ENDS,
    edits: [
      {
        from: `if (steps.foreign || steps.undoing !== null || unproved)`,
        to: `if (steps.foreign || steps.undoing !== null)`,
      },
    ],
    tests: [CALLS],
    only: 'throws before it comes to a call',
  },
  {
    name: 'operation: forget what a call brought when the function throws behind it',
    file: ENDS,
    edits: [
      { from: `  if (!steps.pending) return\n`, to: `  if (steps.pending || !steps.pending) return\n` },
    ],
    tests: [CALLS],
    only: 'is kept when the function throws',
  },
  {
    name: 'operation: run again what answered 4xx after a call took effect',
    file: RUN,
    edits: [
      { from: `this.#notNow(status) && (status >= 500 || !this.#steps.foreign)`, to: `this.#notNow(status)` },
    ],
    tests: ['test/operations/call-before-call.test.ts'],
    only: 'answers 4xx',
  },
  {
    name: 'operation: look for ever at what stays in doubt',
    file: HOLD,
    edits: [
      {
        from: `const inMs = this.house.scheduleMs[looks]`,
        to: `const inMs = this.house.scheduleMs[Math.min(looks, this.house.scheduleMs.length - 1)]`,
      },
    ],
    tests: [WORKERS],
    only: 'after the last look',
  },
  {
    name: 'operation: count looks at one call against the next',
    file: HOLD,
    edits: [{ from: `    this.#looks = 0\n`, to: `` }],
    tests: [CALLS],
    only: 'not counted against the next',
  },
  {
    name: 'operation: give the sealed reply to the caller',
    file: 'src/store/sealed-operations.ts',
    edits: [{ from: `reply: plain ?? end.reply`, to: `reply: end.reply` }],
    tests: [CALLS],
    only: 'given what a replay gives',
  },
  {
    name: 'operation: go forward again after the undoing has begun',
    file: RUN,
    edits: [
      {
        from: `never goes forward again.\n    if (this.#steps.undoing !== null) throw this.#stop({ why: 'undo' })`,
        to: `never goes forward again.`,
      },
    ],
    tests: [SAGA],
    only: 'never goes forward again',
  },
  {
    name: 'operation: leave no mark that the undoing has begun',
    file: RUN,
    edits: [{ from: `    this.#steps.add(entry)\n    await this.#commit()`, to: `` }],
    tests: [SAGA],
    only: 'never goes forward again',
  },
  {
    name: 'operation: undo in the order in which it was done',
    file: 'src/operation/undos.ts',
    edits: [{ from: `undos.toReversed()`, to: `[...undos]` }],
    tests: [UNDONE],
    only: 'in reverse',
  },
  {
    name: 'operation: undo again what is undone already',
    file: 'src/operation/undos.ts',
    edits: [{ from: `return reversed.slice(done.length)`, to: `return reversed` }],
    tests: [SAGA],
    only: 'undoes each once',
  },
  {
    name: 'operation: undo around a call whose outcome is in doubt',
    file: RUN,
    edits: [{ from: `isOurs(error) || this.unproved`, to: `isOurs(error)` }],
    tests: [UNDONE],
    only: 'before it comes to a call in doubt',
  },
  {
    name: 'settle a request with the evidence of an earlier life of its key',
    file: 'src/store/postgres/sql/evidence.ts',
    edits: [{ from: `e.call_key = $4 AND e.received_at >= \${lifeOf(schema, 'r')}`, to: 'e.call_key = $4' }],
    tests: ['test/operations/evidence.test.ts'],
  },
  {
    name: 'keep evidence out because an earlier life of the key had some',
    file: 'src/store/postgres/sql/evidence.ts',
    edits: [{ from: 'e.received_at < clock_timestamp() - ', to: 'e.received_at < now() - 9999 * ' }],
    tests: ['test/operations/evidence.test.ts'],
  },
]
