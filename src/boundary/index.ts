/** The HTTP contract, free of any framework. */
export type { Admission, Admit, Asked, Refusal } from './admission.ts'
export { type Answer, Boundary, type RunHandler } from './boundary.ts'
export type { OnceContext } from './context.ts'
export type { Finality } from './final.ts'
export { POLICY_NAMES, type RoutePolicy } from './policy.ts'
export type { Profile } from './profiles.ts'
export type { HttpReply } from './reply.ts'
export type { BoundaryRequest, RequestBody } from './request.ts'
