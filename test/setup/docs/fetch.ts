/** What blocks with handlers of Request and Response take as given, those of Hono and node:http among them. */
import type { Hono } from 'hono'

export declare const app: Hono<{ Variables: { customer: string } }>
export declare const account: () => string
export declare const createOrder: (order: unknown) => Promise<{ id: string }>
export declare const capture: (id: string, order: unknown) => Promise<{ id: string }>
export declare const whoIs: (request: Request) => string
export declare const Bun: { serve(options: { fetch(request: Request): Promise<Response> }): unknown }
export declare const Deno: { serve(handler: (request: Request) => Promise<Response>): unknown }
