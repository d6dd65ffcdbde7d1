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
]
