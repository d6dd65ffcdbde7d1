/** What blocks with routes of Fastify take as given. */
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import type { Overload } from '../../../src/rate-limits/index.ts'

export declare const app: FastifyInstance
export declare const account: () => string
export declare const createOrder: RouteHandlerMethod
export declare const onTrouble: (error: unknown) => void
export declare const load: Overload
