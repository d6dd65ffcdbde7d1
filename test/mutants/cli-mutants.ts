import type { Mutant } from './mutants.ts'

const DOOR = 'test/cli/door.test.ts'
const COMMANDS = 'test/cli/commands.test.ts'

/** Faults in what the command line promises: to whom it says what, and what it leaves alone. */
export const CLI_MUTANTS: readonly Mutant[] = [
  {
    name: 'command line: list a key of its own among those of the service',
    file: 'src/store/postgres/store.ts',
    edits: [{ from: `      if (this.#starts === 'to_look') return\n`, to: '' }],
    tests: [COMMANDS],
    only: 'by an operator without the secret',
  },
  {
    name: 'command line: store a reply in the clear where the service seals',
    file: 'src/cli/open.ts',
    edits: [{ from: 'if (used.length === 0) return', to: 'if (used.length >= 0) return' }],
    tests: [COMMANDS],
    only: 'by an operator without the secret',
  },
  {
    name: 'command line: seal a reply with bytes that the service has not',
    file: 'src/cli/open.ts',
    edits: [{ from: 'listed.digest !== ring.digestOf(ring.currentId)', to: 'ring.currentId === null' }],
    tests: [COMMANDS],
    only: 'by an operator without the secret',
  },
  {
    name: 'command line: do what cannot be taken back without asking',
    file: 'src/cli/io.ts',
    edits: [{ from: '  if (yes) return\n', to: '  if (yes || io.stdin.isTTY !== true) return\n' }],
    tests: [DOOR],
    only: 'is asked about on a terminal',
  },
  {
    name: 'command line: print a password',
    file: 'src/cli/io.ts',
    edits: [{ from: `shown.replaceAll(secret, '***')`, to: 'shown' }],
    tests: [DOOR],
    only: 'are nowhere in what is printed',
  },
  {
    name: 'command line: let a text of the database give orders to a terminal',
    file: 'src/cli/table.ts',
    edits: [
      { from: '[head, ...rows].map((row) => row.map(plain))', to: '[head, ...rows].map((row) => [...row])' },
    ],
    tests: [COMMANDS],
    only: 'what is parked, and another try',
  },
  {
    name: 'command line: go on with the next batch after SIGINT',
    file: 'src/cli/commands/reap.ts',
    edits: [{ from: 'more && !io.signal.aborted', to: 'more' }],
    tests: [DOOR],
    only: 'SIGINT ends it',
  },
  {
    name: 'command line: apply migrations behind the one that was asked for',
    file: 'src/store/postgres/migrate.ts',
    edits: [
      {
        from: '.filter(({ version }) => version <= to)',
        to: '.filter(({ version }) => to > 0 && version > 0)',
      },
    ],
    tests: [COMMANDS],
    only: 'up to a number',
  },
]
