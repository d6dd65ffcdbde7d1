/**
 * The client half of an idempotency key: a `fetch` that sends one action once, and a place where the key of an action survives the page.
 *
 * @module
 */

export type { ApiName, Convention } from './conventions.ts'
export {
  type CallFailure,
  Executed,
  type FailureFacts,
  type FailureInit,
  NotExecuted,
  OutcomeUnknown,
} from './errors.ts'
export { idempotentFetch } from './fetch.ts'
export { businessKey } from './keys/business-key.ts'
export {
  type ActionTurn,
  type PendingAction,
  type PendingActionOptions,
  pendingAction,
  type Unsettled,
} from './keys/pending.ts'
export { indexedDbStorage, type KeyStorage, memoryStorage } from './keys/storage.ts'
export type {
  Attempt,
  CallOptions,
  ClientOptions,
  Evidence,
  Hooks,
  IdempotentFetch,
  IdempotentInit,
  Patience,
  Sent,
  WhyWaiting,
} from './options.ts'
export type { KeyStatus } from './status.ts'
