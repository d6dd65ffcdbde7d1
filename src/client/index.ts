/**
 * The client half of an idempotency key: a `fetch` that sends one action once. What makes and keeps the key of an action is in
 * `onlyonce/client/keys`.
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
