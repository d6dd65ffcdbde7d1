import type { Mutant } from './mutants.ts'

const CUT = 'test/truth/cut-while-called.test.ts'
const PROOF = 'src/protect/proof.ts'
const PROOFS = 'test/truth/proof.test.ts'
const UNANSWERED = 'test/truth/unanswered.test.ts'
const UNREADABLE = 'test/truth/unreadable.test.ts'
const DATABASE = 'test/truth/database-errors.test.ts'
const EDGES = 'test/contract/handler-lease.test.ts'

/** Answers that would say of a key that nothing was executed, and be false. */
export const TRUTH_MUTANTS: readonly Mutant[] = [
  {
    name: 'truth: tell the error of the store though the record is in doubt',
    file: 'src/operation/conclude.ts',
    edits: [{ from: `left.why === 'conflict' || claimsNothingDone(end.error) ? left : end`, to: `end` }],
    tests: [CUT],
  },
  {
    name: 'truth: say that a call was not executed though a step before it is durable',
    file: 'src/operation/conclude.ts',
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
  {
    name: 'truth: write into an error that its author has frozen',
    file: 'src/core/errors.ts',
    edits: [
      {
        from: `if (Reflect.set(statement, 'executed', ERRORS[statement.code].executed)) return statement`,
        to: `Object.assign(statement, { executed: ERRORS[statement.code].executed }); return statement`,
      },
    ],
    tests: [PROOFS],
    only: 'frozen the error',
  },
  {
    name: 'truth: let other work run what an operation has durable steps of',
    file: 'src/record/unfinished.ts',
    edits: [
      {
        from: `hasSteps !== true || claimant === 'operation'`,
        to: `hasSteps !== true || claimant !== null`,
      },
    ],
    tests: ['test/contract/kinds.test.ts'],
    only: 'is not run from the start',
  },
  {
    name: 'truth: forget in what is seen of a record that steps of it are durable',
    file: 'src/store/postgres/rows.ts',
    edits: [{ from: `Number(row[24] ?? 0) > 0`, to: `Number(row[24] ?? 0) > 9_999` }],
    tests: ['test/contract/kinds.test.ts'],
    only: 'is not run from the start',
  },
  {
    name: 'truth: look into a proxy to tell whether it is an error of ours',
    file: 'src/core/thrown.ts',
    edits: [{ from: `    if (types.isProxy(at)) return false\n`, to: `` }],
    tests: [UNREADABLE],
    only: 'leaves a call in doubt',
  },
  {
    name: 'truth: take an error of ours for one that can be read though a getter of it throws',
    file: 'src/core/thrown.ts',
    edits: [{ from: `?.get !== undefined) return false`, to: `?.get === null) return false` }],
    tests: [UNREADABLE],
    only: 'leaves a call in doubt',
  },
  {
    name: 'truth: tell that a request started nothing whose claim was not answered',
    file: 'src/operation/hold.ts',
    edits: [
      {
        from: `throw maybeClaimed && !isInterrupted(error) ? inDoubt(error) : error`,
        to: `throw error`,
      },
    ],
    tests: [UNANSWERED],
    only: 'operations.claim after',
  },
  {
    name: 'truth: tell that a request started nothing whose take-over was not answered',
    file: 'src/operation/run-operation.ts',
    edits: [{ from: `throw unanswered && !isReadOnly(error) ? inDoubt(error) : error`, to: `throw error` }],
    tests: [UNANSWERED],
    only: 'operations.takeOver after',
  },
  {
    name: 'truth: tell the error of the store though a COMMIT is in doubt',
    file: 'src/protect/transaction.ts',
    edits: [{ from: `store.settle(attempt).catch(throwInDoubt)`, to: `store.settle(attempt)` }],
    tests: [UNANSWERED],
    only: 'settle before',
  },
  {
    name: 'truth: take the word of work that may run twice for a proof of its key',
    file: PROOF,
    edits: [{ from: `(from === 'retryable' && !effectsPossible)`, to: `from === 'retryable'` }],
    tests: [PROOFS],
    only: 'may run twice',
  },
  {
    name: 'truth: forget what a rerunnable handler may have done when another kind of work retries',
    file: 'src/record/transitions.ts',
    edits: [{ from: `const effectsPossible = mayHideEffects(record)`, to: `const effectsPossible = false` }],
    tests: [PROOFS],
    only: 'by handler that may not run twice',
  },
  {
    name: 'truth: forget what a rerunnable handler may have done when a transaction retries',
    file: PROOF,
    edits: [{ from: ` && !mayHideEffects(previous))`, to: `)` }],
    tests: [PROOFS],
    only: 'by transaction that may not run twice',
  },
  {
    name: 'truth: remember what a rerunnable handler may have done for one retry alone',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [{ from: `coalesce($9::"char", kind)`, to: `coalesce(kind, $9::"char")` }],
    tests: [PROOFS],
    only: 'by handler that may not run twice',
  },
  {
    name: 'truth: forget what a rerunnable handler may have done when a worker goes on with an operation',
    file: 'src/operation/run-operation.ts',
    edits: [{ from: `effectsPossible: resumed.effectsPossible,`, to: `effectsPossible: false,` }],
    tests: [PROOFS],
    only: 'a worker went on with',
  },
  {
    name: 'truth: let the owner of an operation alone remember what a rerunnable handler may have done',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [{ from: `THEN true ELSE r.effects_possible END`, to: `THEN true END` }],
    tests: [PROOFS],
    only: 'a retry went on with',
  },
  {
    name: 'truth: be in doubt about a claim that a server which only reads has refused',
    file: 'src/operation/hold.ts',
    edits: [{ from: `unanswered && !isReadOnly(error)`, to: `unanswered` }],
    tests: ['test/contract/read-only.test.ts'],
    only: 'an operation is told so',
  },
  {
    name: 'truth: take a record of another for a proof',
    file: PROOF,
    edits: [
      {
        from: `proof: left && nothingBefore ? PROVED : null`,
        to: `proof: PROVED`,
      },
    ],
    tests: [PROOFS],
    only: 'has taken meanwhile',
  },
  {
    name: 'truth: let what was proved of one key pass for another',
    file: PROOF,
    edits: [
      {
        from: `  return proof === null ? unproved(error, code) : proveStatement`,
        to: `  return proveStatement`,
      },
    ],
    tests: [PROOFS],
    only: 'transaction of the caller',
  },
  {
    name: 'truth: answer for a key that another request has executed meanwhile',
    file: 'src/operation/conclude.ts',
    edits: [
      {
        from: `return left ? { why: 'left', proof } : { why: 'conflict' }`,
        to: `return { why: 'left', proof }`,
      },
    ],
    tests: [PROOFS],
    only: 'refused its own duplicate',
  },
  {
    name: 'truth: undo an operation because the disk is full',
    file: 'src/store/postgres/sql-states.ts',
    edits: [{ from: `  '53': 'passing',`, to: `  '53': 'meant',` }],
    tests: [DATABASE],
    only: '53100 undoes nothing',
  },
  {
    name: 'truth: undo an operation because a table is missing',
    file: 'src/operation/step.ts',
    edits: [{ from: `return end.meant === false ?`, to: `return end.end !== 'failed' ?` }],
    tests: [DATABASE],
    only: '42P01 undoes nothing',
  },
  {
    name: 'truth: undo an operation because the store was away in a call inside it',
    file: 'src/operation/run.ts',
    edits: [{ from: `provesNothingDone(error) || isOurs(error) || `, to: `provesNothingDone(error) || ` }],
    tests: [DATABASE],
    only: 'a call inside its function',
  },
  {
    name: 'truth: show what the database said',
    file: 'src/record/value.ts',
    edits: [
      { from: `'handler_failed', { cause })`, to: `'handler_failed', { detail: \`\${said?.message}\` })` },
    ],
    tests: [DATABASE],
    only: 'told without a word',
  },
  {
    name: 'truth: tell of a store that is away when a transaction was refused at COMMIT',
    file: 'src/http/ran.ts',
    edits: [{ from: `if (begun === null) return`, to: `if (begun === null || begun) return` }],
    tests: [DATABASE],
    only: 'checked at COMMIT',
  },
  {
    name: 'take the own word of the work for a lost lease',
    file: 'src/store/postgres/classify.ts',
    edits: [{ from: "if (code.startsWith('OO') && !isRefusedOwner(error)) return 'other'", to: '' }],
    tests: ['test/contract/own-words.test.ts'],
  },
]
