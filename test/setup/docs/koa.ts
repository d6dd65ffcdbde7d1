/** What blocks with routes of Koa take as given. */
import type Router from '@koa/router'
import type { Middleware } from 'koa'

export declare const router: Router
export declare const account: () => string
export declare const createOrder: Middleware
