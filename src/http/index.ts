/** The HTTP contract, free of any framework. */
export type { Admission, Admit, Asked, Refusal } from './admission.ts'
export type { Answer, RunHandler } from './answer.ts'
export { Boundary } from './boundary.ts'
export type { IdempotencyContext, RequestContext } from './context.ts'
export type { Finality } from './final.ts'
export type { ConflictTold, ReplayTold } from './hooks.ts'
export type { KeyOf, KeySource } from './key-source.ts'
export { followLayers } from './layers.ts'
export { POLICY_NAMES, type RoutePolicy } from './policy.ts'
export type { Profile } from './profiles.ts'
export type { HttpReply } from './reply.ts'
export type { BoundaryRequest, RequestBody } from './request.ts'
export type {
  Asks,
  GivenContext,
  HandlerRoute,
  Keyless,
  KeyOption,
  Protect,
  RouteContext,
  Schema,
} from './typed-route.ts'
export { contextFor, unprotectedReply } from './unprotected.ts'
export type { BodyIssue, StandardSchema } from './validate.ts'
