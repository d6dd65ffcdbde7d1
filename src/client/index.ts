/**
 * The client half of an idempotency key: a `fetch` that sends one action once, and a place where the key of an action survives the page.
 *
 * @module
 */
export { businessKey } from './business-key.ts'
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
export {
  type ActionTurn,
  type PendingAction,
  type PendingActionOptions,
  pendingAction,
  type Unsettled,
} from './pending.ts'
export type { KeyStatus } from './status.ts'
export { indexedDbStorage, type KeyStorage, memoryStorage } from './storage.ts'
