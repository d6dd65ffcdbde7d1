/**
 * onlyonce: a request that moves money takes effect once, however often it is sent.
 *
 * What every service needs. Stores are behind `onlyonce/postgres` and `onlyonce/memory`, frameworks behind doors of their own, and so is everything else: the list is in
 * docs/start/installing.md. Nothing here loads a driver or reads a file.
 */

export { callRefused, type ErrorCode, notExecuted, OnlyonceError } from './core/errors.ts'
export { invalid } from './core/invalid.ts'
export type { Secret } from './core/ring.ts'
export { businessKey } from './key/index.ts'
export type {
  ExecuteCall,
  Onlyonce,
  OnlyonceOptions,
  ProtectedCall,
  Result,
  RunCall,
  RunResult,
  TransactionCall,
} from './onlyonce/door.ts'
export type { Explanation } from './onlyonce/explain.ts'
export type { IssuedKey } from './onlyonce/issuer.ts'
export { onlyonce } from './onlyonce/onlyonce.ts'
export { unwrap } from './onlyonce/unwrap.ts'
export {
  type CallContext,
  type CallStep,
  type Found,
  type Op,
  type Operation,
  OperationReply,
  operation,
  reply,
} from './operation/operation.ts'
export type { HandlerContext } from './protect/handler.ts'
export type { Recover, RecoverContext, Recovered } from './protect/recover.ts'
export type { RecordId, Stuck } from './record/index.ts'
export type { Queryable, Store } from './store/contract.ts'
