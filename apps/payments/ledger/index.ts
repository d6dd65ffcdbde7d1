/**
 * The ledger: double entry, append-only, checked by the database. See docs/guides/payments/ledger.md.
 */
export { availableOf, type Balance, balances, lockBalance } from './balance.ts'
export { checkpoint } from './checkpoint.ts'
export {
  authorizationLines,
  captureLines,
  type LedgerAccount,
  type Line,
  refundLines,
  releaseLines,
  transferInLines,
  transferOutLines,
} from './lines.ts'
export { type LedgerState, type Posting, post, type Reversal, reverse, type Source } from './post.ts'
export { type CheckName, type InFlight, type LedgerProblem, type Verification, verify } from './verify.ts'
export { checkpointer } from './worker.ts'
