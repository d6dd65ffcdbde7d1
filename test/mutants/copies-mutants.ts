import type { Mutant } from './mutants.ts'

const COPIES = 'test/contract/copies.test.ts'

/** Faults in what several copies of the package in one process share, and in what is done for older versions of pg. */
export const COPIES_MUTANTS: readonly Mutant[] = [
  {
    name: 'let an error prove to another copy what it proved to one already',
    file: 'src/protect/proof.ts',
    edits: [
      {
        from: "acrossCopies('spent_errors', () => new WeakSet<object>())",
        to: "acrossCopies('spent' + Math.random(), () => new WeakSet<object>())",
      },
    ],
    tests: [COPIES],
    only: 'prove nothing to the other copy',
  },
  {
    name: 'know only the errors of the own copy',
    file: 'src/core/errors.ts',
    edits: [
      {
        from: "brandAcrossCopies(OnlyonceError, 'error', [",
        to: "brandAcrossCopies(class {}, 'no_error', [",
      },
    ],
    tests: [COPIES],
    only: 'are known by instanceof',
  },
  {
    name: 'work in a transaction that another copy works in',
    file: 'src/store/postgres/busy.ts',
    edits: [{ from: "acrossCopies('savepoint_calls_2',", to: "acrossCopies('calls' + Math.random()," }],
    tests: [COPIES],
    only: 'busy for the other',
  },
  {
    name: 'take it that no transaction is open on a connection of an older pg',
    file: 'src/store/postgres/wire.ts',
    edits: [{ from: "await client.query('')", to: "statuses.set(client, 'I')" }],
    tests: ['test/contract/pg-versions.test.ts'],
    only: 'given back inside a transaction',
  },
]
