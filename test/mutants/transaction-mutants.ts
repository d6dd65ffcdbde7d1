import type { Mutant } from './mutants.ts'

const ENDED = ['test/contract/ended-meanwhile.test.ts']
const SHARED = ['test/contract/shared-client.test.ts']
const TOGETHER = ['test/contract/within-together.test.ts']
const NOT_AWAITED = ['test/contract/not-awaited.test.ts']
const IDLE = ['test/contract/idle-late.test.ts']

/** Faults in what is done in a transaction that the caller holds. */
export const TRANSACTION_MUTANTS: readonly Mutant[] = [
  {
    name: 'caller: write where the transaction is over',
    file: 'src/store/postgres/sql/columns.ts',
    edits: [
      {
        from: `\`coalesce(\${parameter}::xid8 IS NULL OR pg_current_xact_id_if_assigned() = \${parameter}::xid8, false)\``,
        to: `\`coalesce(\${parameter}::xid8 IS NOT NULL OR true, false)\``,
      },
    ],
    tests: ENDED,
  },
  {
    name: 'caller: write in whatever transaction is open by then',
    file: 'src/store/postgres/sql/columns.ts',
    edits: [
      {
        from: `pg_current_xact_id_if_assigned() = \${parameter}::xid8, false)\``,
        to: `pg_current_xact_id_if_assigned() >= \${parameter}::xid8, false)\``,
      },
    ],
    tests: ENDED,
  },
  {
    name: 'caller: take a record over where the transaction is over',
    file: 'src/store/postgres/sql/claim.ts',
    edits: [
      {
        from: `clock_timestamp()) AND \${isInside('$23')}`,
        to: `clock_timestamp()) AND $23::text IS NOT DISTINCT FROM $23`,
      },
    ],
    tests: ENDED,
    only: 'may run again',
  },
  {
    name: 'caller: complete a record where the transaction is over',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [{ from: `WHERE \${ANSWERED} AND \${isInside('$12')}`, to: `WHERE \${ANSWERED}` }],
    tests: ENDED,
    only: 'COMMIT once.within writes',
  },
  {
    name: 'caller: decide where the transaction is over',
    file: 'src/store/postgres/sql/decisions.ts',
    edits: [
      {
        from: `r.waits_for = $19::text) AND \${isInside('$20')}`,
        to: 'r.waits_for = $19::text) AND $20::text IS NOT DISTINCT FROM $20',
      },
    ],
    tests: ENDED,
  },
  {
    name: 'caller: let the function of within write behind the end of its transaction',
    file: 'src/store/postgres/within.ts',
    edits: [
      {
        from: "statusNow(tx) === 'I' ? Promise.reject(ended()) : ",
        to: "statusNow(tx) === '?' ? Promise.reject(ended()) : ",
      },
    ],
    tests: ENDED,
  },
  {
    name: 'caller: let the tx of within live on when its function is over',
    file: 'src/store/postgres/within.ts',
    edits: [{ from: 'this.#over = true', to: '' }],
    tests: SHARED,
    only: 'ends with its function',
  },
  {
    name: 'caller: tell the refusal of a standby in the words of the driver',
    file: 'src/store/postgres/within.ts',
    edits: [
      {
        from: `if (classify(error) === 'not_primary') throw`,
        to: `if (classify(error) === 'no fault') throw`,
      },
    ],
    tests: ['test/contract/read-only.test.ts'],
    only: 'on a standby',
  },
  {
    name: 'caller: wait for ever for a call that is not awaited and never ends',
    file: 'src/store/postgres/busy.ts',
    edits: [
      {
        from: `if (this.transaction.xid === null) return await settled`,
        to: `if (unawaitedMaxMs > 0) return await settled`,
      },
    ],
    tests: ['test/contract/not-awaited.test.ts'],
    only: 'once.within: aborts',
  },
  {
    name: 'caller: go on beside a call that was not awaited and has not ended',
    file: 'src/store/postgres/busy.ts',
    edits: [
      { from: `if (!this.#calls.none) throw leaveOpen(`, to: `if (!this.#calls.none) void (` },
      { from: `this.transaction, unawaitedMaxMs)`, to: `0)` },
    ],
    tests: ['test/contract/not-awaited.test.ts'],
    only: 'once.within: aborts',
  },
  {
    name: 'caller: leave a transaction open in which a call was left open',
    file: 'src/store/postgres/left-open.ts',
    edits: [{ from: `    abort().catch(() => {}),`, to: `    Promise.resolve(abort),` }],
    tests: ['test/contract/not-awaited.test.ts'],
    only: 'once.within: aborts',
  },
  {
    name: 'caller: abort a later transaction for a call that was left open in an earlier one',
    file: 'src/store/postgres/left-open.ts',
    edits: [{ from: `WHERE \${isInside('$1')}`, to: 'WHERE $1::text IS NOT NULL' }],
    tests: ['test/contract/not-awaited.test.ts'],
    only: 'inbox.once: aborts',
  },
  {
    name: 'caller: release a savepoint in a later transaction, for a call that was left open',
    file: 'src/store/postgres/savepoint.ts',
    edits: [{ from: `    if (transaction.leftOpen !== null) throw transaction.leftOpen\n`, to: `` }],
    tests: ['test/contract/not-awaited.test.ts'],
    only: 'ends late',
  },
  {
    name: 'caller: keep the bound of a claim on lock waits',
    file: 'src/store/postgres/sql/claim.ts',
    edits: [
      { from: `set_config('lock_timeout', bound.before, true) AS restored`, to: `bound.before AS restored` },
    ],
    tests: ['test/contract/within-unharmed.test.ts'],
  },
  {
    name: 'caller: wait for the lock of another claim without a bound',
    file: 'src/store/postgres/sql/claim.ts',
    edits: [{ from: `set_config('lock_timeout', $13, true) AS now`, to: `$13::text AS now` }],
    tests: ['test/contract/within-unharmed.test.ts'],
    only: 'has no bound on lock waits',
  },
  {
    name: 'caller: tell calls side by side by the objects that they are given',
    file: 'src/store/postgres/busy.ts',
    edits: [
      {
        from: 'const { key } = asked\n',
        to: 'const key = asked.xid === null ? asked.key : tx\n',
      },
    ],
    tests: TOGETHER,
    only: 'side by side as well',
  },
  {
    name: 'caller: do not know a transaction of the library behind another object',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: 'if (asked !== undefined) asked.own = this', to: '' }],
    tests: TOGETHER,
    only: 'transaction of the library too',
  },
  {
    name: 'caller: lose a fence that is asserted through another object',
    file: 'src/store/postgres/locks.ts',
    edits: [{ from: 'noteFence(transaction, ask)', to: 'noteFence({ ...transaction, key: tx }, ask)' }],
    tests: TOGETHER,
    only: 'carry a fence',
  },
  {
    name: 'commit before a call that was not awaited has ended',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: 'this.#calls.add(call)', to: 'void call' }],
    tests: NOT_AWAITED,
    only: 'committed with once.transaction',
  },
  {
    name: 'release a savepoint before a call inside it that was not awaited has ended',
    file: 'src/store/postgres/busy.ts',
    edits: [{ from: 'this.#calls.add(call)', to: 'void call' }],
    tests: NOT_AWAITED,
    only: 'that once.within has joined',
  },
  {
    name: 'wait for a call that was not awaited for longer than the transaction has time',
    file: 'src/store/postgres/work-transaction.ts',
    edits: [{ from: 'await this.#waitForCalls()', to: 'await this.tx.settled()' }],
    tests: NOT_AWAITED,
    only: 'never ends',
  },
  {
    name: 'do not hear that the server has ended an idle transaction of the caller',
    file: 'src/store/postgres/server-end.ts',
    edits: [{ from: 'emitterOf(tx)?.on(errorMonitor, this.#hear)', to: '' }],
    tests: IDLE,
    only: 'no statement is under way',
  },
  {
    name: 'do not hear what the function of within was told and ignored',
    file: 'src/store/postgres/server-end.ts',
    edits: [{ from: '      this.#hear(error)\n', to: '' }],
    tests: IDLE,
    only: 'which ignores it',
  },
  {
    name: 'tell a transaction that took too long as one that was idle',
    file: 'src/store/postgres/classify.ts',
    edits: [{ from: "'25P04': 'timed_out'", to: "'25P04': 'idle'" }],
    tests: ['src/store/postgres/ends.test.ts'],
  },
]
