import type { Mutant } from './mutants.ts'

const CONFORMANCE = 'src/store/postgres/conformance.test.ts'
const INVALID = 'test/contract/invalid.test.ts'

/** Faults in what becomes of a request that its work calls invalid. */
export const INVALID_MUTANTS: readonly Mutant[] = [
  {
    name: 'invalid: remove the record of an earlier attempt',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [{ from: `WHERE \${OWNED} AND fence = 1`, to: `WHERE \${OWNED}` }],
    tests: [CONFORMANCE],
    only: 'forgets nothing that an earlier attempt has left',
  },
  {
    name: 'invalid: remove the record of another owner',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [
      {
        from: `WHERE \${OWNED} AND fence = 1`,
        to: `WHERE \${SEEN} AND $5 <> '' AND state = 'in_progress' AND fence = 1`,
      },
    ],
    tests: [CONFORMANCE],
    only: 'forgets nothing that has another owner',
  },
  {
    name: 'invalid: free the key of a plain 400',
    file: 'src/http/context.ts',
    edits: [
      {
        from: `    if (this.#invalid === null) return null`,
        to: `    if (this.#invalid === null) return status === 400 ? { error: invalid(), ownReply: true } : null`,
      },
    ],
    tests: ['test/adapters/express5.test.ts'],
    only: 'a status of 400 alone frees no key',
  },
  {
    name: 'invalid: take the word of a call inside for one of the work around it',
    file: 'src/protect/proof.ts',
    edits: [{ from: ` && !spent.has(error as object)`, to: `` }],
    tests: [INVALID],
    only: 'says nothing about the work around it',
  },
  {
    name: 'invalid: believe an operation behind a step',
    file: 'src/operation/run.ts',
    edits: [{ from: `this.#steps.count === 0 && !this.unproved && `, to: `!this.unproved && ` }],
    tests: [INVALID],
    only: 'frees no key behind a step',
  },
  {
    name: 'invalid: forget that an earlier attempt may have called',
    file: 'src/operation/run.ts',
    edits: [{ from: `this.#steps.count === 0 && !this.unproved && `, to: `this.#steps.count === 0 && ` }],
    tests: [INVALID],
    only: 'a call may have been made before',
  },
  {
    name: 'invalid: tell of a request as wrong that another has done',
    file: 'src/protect/transaction.ts',
    edits: [
      { from: `  if (record?.state === 'completed') return { next: 'look', error }\n  throw`, to: `  throw` },
    ],
    tests: [INVALID],
    only: 'another process came first',
  },
  {
    name: 'invalid: say that the key is free where a body is refused that an earlier request has brought',
    file: 'src/http/invalid.ts',
    edits: [
      { from: `return decision.kind === 'run' ? 'kept' :`, to: `return decision.kind === 'run' ? 'free' :` },
    ],
    tests: ['test/adapters/express5.test.ts'],
    only: 'left retryable is not called free',
  },
  {
    name: 'invalid: say that the key is free where an earlier request has left a record',
    file: 'src/protect/proof.ts',
    edits: [{ from: `  return keptInvalid(error)`, to: `  return error` }],
    tests: [INVALID],
    only: 'handler: a request that is called invalid keeps the record',
  },
]
