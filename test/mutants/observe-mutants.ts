import type { Mutant } from './mutants.ts'

/** Faults in what is told of calls, and to whom. */
export const OBSERVE_MUTANTS: readonly Mutant[] = [
  {
    name: 'do not signal a reused key',
    file: 'src/observe/live-call.ts',
    edits: [
      { from: `if (met === 'key_misuse') this.#observers.emit(`, to: `if (met === 'key_misuse') void (` },
    ],
    tests: ['test/contract/observe.test.ts'],
  },
  {
    name: 'show the whole key in the log',
    file: 'src/observe/fields.ts',
    edits: [{ from: `return \`\${key.slice(0, 4)}…\${digestKey(key)}\``, to: `return key` }],
    tests: ['test/contract/observe-canary.test.ts'],
  },
  {
    name: 'let an observer harm the call that it observes',
    file: 'src/observe/observers.ts',
    edits: [{ from: `      this.#warn(observer, error)\n      return null`, to: `      throw error` }],
    tests: ['test/contract/observe.test.ts'],
  },
  {
    name: 'leave a card number in the code of an error',
    file: 'src/failure.ts',
    edits: [{ from: `code: storable(`, to: `code: ((text: unknown) => \`\${text}\`)(` }],
    tests: ['test/contract/observe-canary.test.ts'],
  },
  {
    name: 'take a heartbeat that overtakes the save for a lost lease',
    file: 'src/protect/handler.ts',
    edits: [{ from: `    working = false\n`, to: `` }],
    tests: ['test/contract/observe-trouble.test.ts'],
  },
  {
    name: 'count stuck records that are new',
    file: 'src/store/postgres/sql/stuck.ts',
    edits: [{ from: ` AND attempted_at <= now() - \${interval('$1')}`, to: ` AND $1::float8 > 0` }],
    tests: ['test/contract/stuck.test.ts'],
  },
]
