import type { Mutant } from './mutants.ts'

const SQL = 'src/store/postgres/sql/discard.ts'
const DISCARD = 'src/operator/discard.ts'
const TESTS = ['test/operations/discarded-results.test.ts']

/** Faults in what becomes of a durable result that an operator discards. */
export const DISCARD_MUTANTS: readonly Mutant[] = [
  {
    name: 'discard: the result of a step that is not the last one',
    file: DISCARD,
    edits: [
      {
        from: `if (last.name !== given.step)`,
        to: `if (steps.entries.every(({ name }) => name !== given.step))`,
      },
    ],
    tests: TESTS,
    only: 'where another step is the last',
  },
  {
    name: 'discard: the result of a transaction',
    file: DISCARD,
    edits: [{ from: `if (!isCall(last))`, to: `if (last.kind === 'undoing')` }],
    tests: TESTS,
    only: 'last durable step is a transaction',
  },
  {
    name: 'discard: a result upon which a call in doubt was made',
    file: DISCARD,
    edits: [
      { from: `waitsFor !== null || (waitsStep`, to: `(waitsStep` },
      { from: `waitsStep !== last.name))`, to: `waitsStep === last.name))` },
    ],
    tests: TESTS,
    only: 'a call that follows is in doubt',
  },
  {
    name: 'discard: leave the evidence that brought the result',
    file: SQL,
    edits: [{ from: `e.received_at > '-infinity'\n)`, to: `e.received_at < '-infinity'\n)` }],
    tests: TESTS,
    only: 'takes the evidence with it',
  },
  {
    name: 'discard: count anew how long the other side remembers the key',
    file: SQL,
    edits: [{ from: `point_at = \${lifeOf(schema, 'r')}`, to: `point_at = clock_timestamp()` }],
    tests: TESTS,
    only: 'remember the key for longer',
  },
  {
    name: 'discard: let a client hear that nothing was executed',
    file: SQL,
    edits: [{ from: ` effects_possible = true,`, to: `` }],
    tests: TESTS,
    only: 'lets no client hear',
  },
  {
    name: 'discard: make the call that follows without asking about it',
    file: 'src/operation/run.ts',
    edits: [{ from: `return this.#maybeOvertaken && this.#steps.overtaken`, to: `return false` }],
    tests: TESTS,
    only: 'is asked about first',
  },
  {
    name: 'discard: keep what was discarded in the clear',
    file: 'src/store/sealed-operations.ts',
    edits: [{ from: `discarded: closing('discarded', id, discarded)`, to: `discarded` }],
    tests: TESTS,
    only: 'sealed, and is shown',
  },
  {
    name: 'discard: take a record from its owner',
    file: 'src/operator/discard.ts',
    edits: [
      { from: `decidable(seen, [`, to: `decidable(seen && { ...seen, now: Number.MAX_SAFE_INTEGER }, [` },
    ],
    tests: TESTS,
    only: 'is asked about first',
  },
]
