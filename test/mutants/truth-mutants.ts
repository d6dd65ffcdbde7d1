import type { Mutant } from './mutants.ts'

const CUT = 'test/truth/cut-while-called.test.ts'
const EDGES = 'test/contract/handler-edges.test.ts'

/** Answers that would say of a key that nothing was executed, and be false. */
export const TRUTH_MUTANTS: readonly Mutant[] = [
  {
    name: 'truth: tell the error of the store though the record is in doubt',
    file: 'src/protect/operation-conclude.ts',
    edits: [{ from: `return claimsNothingDone(end.error) ? left : end`, to: `return end` }],
    tests: [CUT],
  },
  {
    name: 'truth: say that a call was not executed though a step before it is durable',
    file: 'src/protect/operation-conclude.ts',
    edits: [{ from: `hold.durable && claimsNothingDone(error)`, to: `claimsNothingDone(error) && false` }],
    tests: ['test/operations/basics.test.ts'],
    only: 'was not executed',
  },
  {
    name: 'truth: let the word of a call inside the work pass for that of the work',
    file: 'src/protect/handler.ts',
    edits: [{ from: `  if (!claimsNothingDone(end.error)) return end.error\n`, to: `  return end.error\n` }],
    tests: [EDGES],
    only: 'is not called unexecuted',
  },
]
