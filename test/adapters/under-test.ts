/**
 * The door of the adapter suite. An adapter under test serves routes that are described free of any framework, and turns
 * what their handlers ask for into its framework's own idiom. Everything else, the requests and what has to come of them,
 * is the suite's.
 */
import type { Readable } from 'node:stream'
import type { IdempotencyContext, RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

export type Once = IdempotencyContext<PostgresTx>

/** What a handler is given, as its framework knows it. */
export interface RouteInput {
  /** As the framework parsed it; undefined without a body. JSON is parsed, and so is text. */
  readonly body: unknown
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  /** Null for a request that is not protected. */
  readonly once: Once | null
  /** Sets a header of the response now, long before its body is known. */
  setHeader(name: string, value: string): void
}

/** Name and value; a name may come repeatedly, as Set-Cookie does. */
export type HeaderList = readonly (readonly [name: string, value: string])[]

interface Answered {
  readonly status: number
  readonly headers?: HeaderList
}

/** What is to be done in the framework's idiom. Whatever has no idiom there is done by the nearest one. */
export type Result =
  | (Answered & { readonly do: 'json'; readonly value: unknown })
  | (Answered & { readonly do: 'text'; readonly text: string })
  /** No body, and none is said to be there: 204. */
  | (Answered & { readonly do: 'empty' })
  | (Answered & { readonly do: 'redirect'; readonly location: string })
  | (Answered & { readonly do: 'binary'; readonly type: string; readonly bytes: Buffer })
  /** Writes one after the other, each in a later turn of the event loop. */
  | (Answered & {
      readonly do: 'chunks'
      readonly type: string
      readonly chunks: readonly (string | Buffer)[]
    })
  /** Pipes the stream into the response, with all the waiting that this brings. */
  | (Answered & { readonly do: 'stream'; readonly type: string; readonly stream: Readable })
  /** Ends the response without a word: `res.end()`. The status is the framework's usual one. */
  | { readonly do: 'end' }
  /** Throws at once, before anything is awaited. */
  | { readonly do: 'throw'; readonly error: Error }
  /** Rejects the promise of the handler. Express 4 does not look at it: there, as `next`. */
  | { readonly do: 'reject'; readonly error: Error }
  /** Hands the error to the framework: `next(error)`, or a throw where there is no such thing. */
  | { readonly do: 'next'; readonly error: Error }
  /** Sends a whole JSON reply, and throws in the same turn of the event loop. */
  | (Answered & { readonly do: 'json_and_throw'; readonly value: unknown; readonly error: Error })
  /** Leaves the request to the framework's own 404. */
  | { readonly do: 'not_found' }

/** Where the idempotency layer stands. */
export type Order =
  /** Before the body parser. The usual place. */
  | 'layer_first'
  /** After a parser that keeps nothing but what it made of the body. */
  | 'parser_first'
  /** After a parser that keeps the bytes: `keepRawBody`. */
  | 'parser_first_bytes_kept'

/** One route. Its account is in the header `x-account`; without it the request is nobody's. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With parameters after colons, below the prefix: `/orders/:id`. */
  readonly path: string
  /** Where the sub-router with this route is mounted, such as `/v1`, or `/shops/:shop`; '' for the application itself. */
  readonly prefix: string
  readonly order: Order
  readonly policy: RoutePolicy
  handle(input: RouteInput): Result | Promise<Result>
}

/** The name of what a route does, where its framework has no pattern that could be its name. */
export function nameOf({ method, prefix, path }: Pick<Route, 'method' | 'prefix' | 'path'>): string {
  return `${method} ${prefix}${path}`
}

/** What not every framework has. An adapter that declares one of them as missing says why; the table shows it. */
export const FEATURES = {
  layer_first:
    'a place for the layer before the body parser, where it refuses by itself what is malformed or too large',
  parser_first: 'a body parser that runs before the layer and keeps no bytes',
  bytes_kept: 'a body parser that runs before the layer and keeps the bytes',
  prefix_params: 'parameters in the prefix of a sub-router',
  prefix_pattern: 'prefixes of sub-routers that the layer can see',
  route_pattern: 'patterns of routes that the layer can see',
  error_reply: 'an answer to errors that the layer sees, and can store',
  reply_sent: 'replies that a handler sends by itself, so that it can throw afterwards',
  not_found: 'a 404 of its own that a handler can leave a request to',
  node_response: "Node's own response, so that the length of a reply that was held back is known",
  own_parser: 'a body parser of its own, which refuses what is malformed or too large',
} as const

export type Feature = keyof typeof FEATURES

/** A server that listens on a port of 127.0.0.1. */
export interface Listening {
  readonly port: number
  close(): Promise<void>
}

/**
 * An adapter, as the suite sees it.
 *
 * Every response carries the header `x-early: set`, given by something of the framework's that runs before the layer. The
 * framework's own parser takes JSON of up to 100 KiB (`PARSER_MAX_BYTES`) and refuses more with 413. Errors go to the
 * framework's own error handling, which answers with the error's `status` where it has one, else 500.
 */
export interface AdapterUnderTest {
  /** As the table of results names it: `Express 5`. */
  readonly name: string
  /** What the framework does not have, each with the reason. Cases that need it are not run, and the table says so. */
  readonly lacks: Partial<Readonly<Record<Feature, string>>>
  serve(once: Onlyonce<PostgresTx>, routes: readonly Route[]): Promise<Listening>
}

/** What the framework's own parser takes. */
export const PARSER_MAX_BYTES = 102_400

export const ACCOUNT_HEADER = 'x-account'

export const EARLY_HEADER = ['x-early', 'set'] as const
