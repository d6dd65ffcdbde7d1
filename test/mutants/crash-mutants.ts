import type { Mutant } from './mutants.ts'

const CALLBACKS = 'test/contract/callbacks.test.ts'

/** Faults by which a callback of a timer, a socket or an event would end the process. */
export const CRASH_MUTANTS: readonly Mutant[] = [
  {
    name: 'give back a connection that the pool did not give',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `if (client === undefined) {`, to: `if (client === undefined && waiting) {` }],
    tests: [CALLBACKS],
  },
  {
    name: 'keep a connection that came after its time',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `        else this.release(client)\n`, to: `` }],
    tests: [CALLBACKS],
  },
  {
    name: 'leave the errors of a lent pool unheard',
    file: 'src/store/postgres/hear.ts',
    edits: [{ from: `  pool.on('error', ignore)\n`, to: `` }],
    tests: [CALLBACKS],
  },
  {
    name: 'leave the errors of lent clients unheard',
    file: 'src/store/postgres/hear.ts',
    edits: [{ from: `  pool.on('connect', (client) => client.on('error', ignore))\n`, to: `` }],
    tests: [CALLBACKS],
    only: 'a limit',
  },
  {
    name: 'throw in a callback under a stopped database',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `if (client === undefined) {`, to: `if (client === undefined && waiting) {` }],
    tests: ['test/flood/adapters.test.ts'],
  },
  {
    name: 'migrate at the level that the session has',
    file: 'src/store/postgres/migrate.ts',
    edits: [{ from: `BEGIN ISOLATION LEVEL READ COMMITTED`, to: `BEGIN` }],
    tests: ['test/migrations.faults.test.ts'],
    only: 'serializable',
  },
  {
    name: 'start services at the level that the session has',
    file: 'src/store/postgres/migrate.ts',
    edits: [{ from: `BEGIN ISOLATION LEVEL READ COMMITTED`, to: `BEGIN` }],
    tests: ['apps/payments/test/start.faults.test.ts'],
    only: 'twenty services',
  },
  {
    name: 'give up a start at the first refusal of the database',
    file: 'apps/payments/database/reach.ts',
    edits: [{ from: `if (waitedMs + pauseMs > waitMaxMs) throw`, to: `if (pauseMs > 0) throw` }],
    tests: ['apps/payments/test/start.faults.test.ts'],
    only: 'says so in one line',
  },
  {
    name: 'let the framework answer for a store that was away',
    file: 'src/protect/transaction.ts',
    edits: [{ from: `end.trouble === undefined || rerun) return end`, to: `rerun !== null) return end` }],
    tests: ['test/contract/read-only.test.ts'],
    only: '/transaction over HTTP',
  },
  {
    name: 'take a server that only reads for a fault of the work',
    file: 'src/store/postgres/ends.ts',
    edits: [
      { from: `      return failedBy(error, error, translate)`, to: `      return { end: 'failed', error }` },
    ],
    tests: ['test/contract/read-only.test.ts'],
    only: 'a transaction that',
  },
]
