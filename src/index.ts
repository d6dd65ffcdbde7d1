/**
 * onlyonce: a request that moves money takes effect once, however often it is sent.
 *
 * The stores are here and also behind doors of their own (`onlyonce/postgres`, `onlyonce/memory`); a database
 * to start with is behind `onlyonce/embedded`, what tests need behind `onlyonce/testing`. Metrics and traces are behind
 * `onlyonce/prometheus` and `onlyonce/opentelemetry`, because they need packages that not everybody has.
 */

export {
  callRefused,
  ERRORS,
  type ErrorCode,
  type Executed,
  notExecuted,
  OnlyonceError,
} from './core/errors.ts'
export { type InvalidAnswer, type InvalidIssue, invalid } from './core/invalid.ts'
export { LIMITS } from './core/limits.ts'
export type { Secret } from './core/ring.ts'
export {
  type InexactNumber,
  type JsonLimits,
  type JsonValue,
  parseStrictJson,
  type StrictJson,
} from './fingerprint/index.ts'
export type { Admission, Admit, Asked, Refusal } from './http/index.ts'
export {
  businessKey,
  derivedKey,
  holdsCardNumber,
  type KeyRules,
  maskCardNumbers,
  parseKeyHeader,
} from './key/index.ts'
export { assertFence, type Lock, type LockOptions, type Locks, locks } from './locks/index.ts'
export {
  type CallEnded,
  type CallOutcome,
  type CallTrace,
  type JobEnded,
  type LogFields,
  type Logger,
  logFields,
  logTo,
  type Observer,
  type OutboxFailed,
  type Protection,
  type Reserved,
  type Signal,
  type StoreStep,
  type TracedCall,
  type TraceLink,
  type WebhookAttempted,
} from './observe/index.ts'
export type {
  ExecuteCall,
  IssueKeyCall,
  Onlyonce,
  OnlyonceOptions,
  ProtectedCall,
  Result,
  RunCall,
  RunResult,
  TransactionCall,
} from './onlyonce/door.ts'
export type { Explanation, InDoubt } from './onlyonce/explain.ts'
export type { IssuedKey } from './onlyonce/issuer.ts'
export { onlyonce } from './onlyonce/onlyonce.ts'
export type { Ran, Worker } from './onlyonce/worker.ts'
export {
  type CallContext,
  type CallStep,
  type EmitOptions,
  type Found,
  type Op,
  type Operation,
  OperationReply,
  operation,
  reply,
  type StageOptions,
  type StepResult,
  type ValueOf,
} from './operation/operation.ts'
export {
  type AuditEntry,
  type GivenReply,
  type GivenUp,
  type GivingUp,
  type ListOptions,
  type Operator,
  operator,
  type Page,
  type RecordSummary,
  type Resolution,
  type Shown,
  type ShownEvidence,
  type ShownResults,
  type ShownStep,
  type ShowOptions,
  type Signature,
} from './operator/index.ts'
export {
  type Destination,
  type EmitCall,
  type FailedEvent,
  type HttpPublisherOptions,
  httpPublisher,
  type Inbox,
  type InboxResult,
  inbox,
  type Job,
  type JobContext,
  type Outbox,
  outbox,
  type Publish,
  type PublishContext,
  type Publisher,
  type PublishResult,
  type Relay,
  type RelayOptions,
  type RunJob,
  relay,
  type StageCall,
  type Staged,
} from './outbox/index.ts'
export type { HandlerContext } from './protect/handler.ts'
export type { Recover, RecoverContext, Recovered } from './protect/recover.ts'
export type { Attempt, AttemptOutcome, Failure, RecordId, State, Stuck, StuckCount } from './record/index.ts'
export type { Stored } from './record/value.ts'
export type { CrashPoint, Isolation, OpenTransaction, Queryable, Store } from './store/contract.ts'
export { memory } from './store/memory/index.ts'
export type { Lag, Message, OutboxEvent, OutboxStore, Parked } from './store/outbox.ts'
export type { PostgresOptions, PostgresTx } from './store/postgres/index.ts'
export { postgres } from './store/postgres/index.ts'
export {
  addEvidence,
  type CompleterOptions,
  completer,
  type Evidence,
  type EvidenceTold,
  type ReaperOptions,
  type RecovererOptions,
  type RunningWorkers,
  reaper,
  reconciler,
  recoverer,
  startWorkers,
  type TakerOptions,
  type WorkersOptions,
} from './workers/index.ts'
