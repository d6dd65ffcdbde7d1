import type { Mutant } from './mutants.ts'

/** Faults in what is told of a database that is set up wrongly. */
export const MISCONFIGURED_MUTANTS: readonly Mutant[] = [
  {
    name: 'let clients retry while the password is wrong',
    file: 'src/store/postgres/store.ts',
    edits: [{ from: 'throw startTrouble(error)', to: 'throw (startTrouble(error), error)' }],
    tests: ['test/contract/misconfigured.test.ts'],
  },
  {
    name: 'tell clients over HTTP what is wrong with the database',
    file: 'src/http/problem.ts',
    edits: [{ from: 'const error = forClients(given)', to: 'const error = given ?? forClients(given)' }],
    tests: ['test/contract/misconfigured.test.ts'],
  },
  {
    name: 'start with a role that cannot write',
    file: 'src/store/postgres/rights.ts',
    edits: [{ from: 'if (missing.length === 0) return', to: 'if (missing.length >= 0) return' }],
    tests: ['test/contract/no-delete.test.ts'],
  },
  {
    name: 'keep the digest of earlier bytes where they cannot be deleted',
    file: 'src/store/postgres/key-ids.ts',
    edits: [
      { from: "isSame(one, other))?.digest ?? '')", to: "isSame(one, other) && !other)?.digest ?? '')" },
    ],
    tests: ['test/contract/no-delete.test.ts'],
  },
]
