import type { IncomingMessage, ServerResponse } from 'node:http'
import { Stream } from 'node:stream'
import { OnlyonceError } from '../../../core/errors.ts'
import type { Boundary, BoundaryRequest, RequestBody } from '../../index.ts'
import { readBody } from '../node/body.ts'
import type { Headers } from '../node/capture.ts'
import { SILENCE, type Silence } from '../node/pretence.ts'
import { headerOf, type Known, splitUrl } from '../node/serve.ts'
import { patternText } from '../place.ts'

/** A request of Express, which is Node's own with more on it, or of Fastify, which has Node's own in `raw`. */
export type NestRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  readonly originalUrl?: string
  /** Values may be lists: a wildcard of Express 5. */
  readonly params?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: unknown
  /** Where the application was created with `{ rawBody: true }`. */
  readonly rawBody?: Buffer
  /** The pattern of the route, as Express has it. */
  readonly route?: { readonly path?: unknown }
  /** The pattern of the route, as Fastify has it. */
  readonly routeOptions?: { readonly url?: string }
}

/** The response of Express, which is Node's own, or the reply of Fastify. */
export type NestResponse = (ServerResponse | { readonly raw: ServerResponse }) & { getHeaders(): object }

/** Node's own, of a request or a response. */
export function rawOf<T extends Stream>(wrapped: T | { readonly raw: T }): T {
  return wrapped instanceof Stream ? wrapped : wrapped.raw
}

/** What a controller or a handler is bound to beside its path. */
export interface NestBound {
  /** As a part of the operation's name. */
  readonly constraints: string
  /** Whether hosts are among them. */
  readonly byHost: boolean
}

const UNBOUND: NestBound = { constraints: '', byHost: false }

/** A request as the boundary sees it. */
export function readRequest(
  request: NestRequest,
  account: string | null,
  { policy, bodySizeMaxBytes }: Pick<Boundary<unknown>, 'policy' | 'bodySizeMaxBytes'>,
  bound: NestBound = UNBOUND,
): BoundaryRequest {
  const raw = rawOf(request)
  const { path, query } = splitUrl(request.originalUrl ?? raw.url ?? '/')
  return {
    ...placeOf(request),
    constraints: bound.constraints,
    host: bound.byHost ? raw.headers.host : undefined,
    path,
    method: raw.method ?? 'GET',
    query,
    account,
    carriers: [raw],
    header: (name) => headerOf(raw, name),
    body: () => bodyOf(request, raw, policy.body !== 'parsed', bodySizeMaxBytes),
  }
}

/** The pattern that the request matched, with its parameters. */
function placeOf({ route, routeOptions, params }: NestRequest): Omit<Known, 'account'> {
  const pathParams: Record<string, string> = {}
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value !== undefined) pathParams[name] = typeof value === 'string' ? value : JSON.stringify(value)
  }
  return { route: patternText(routeOptions?.url ?? route?.path), pathParams }
}

/** Nest parses before any controller is asked, and keeps the bytes where it was told to. */
async function bodyOf(
  request: NestRequest,
  raw: IncomingMessage,
  wantsBytes: boolean,
  sizeMaxBytes: number,
): Promise<RequestBody> {
  if (Buffer.isBuffer(request.rawBody)) return { kind: 'raw', bytes: request.rawBody, decoded: true }
  const body = await readBody(raw, sizeMaxBytes)
  if (body.kind === 'raw') return body
  if (wantsBytes) throw new OnlyonceError('raw_body_missing', { detail: HOW_TO_KEEP })
  return { kind: 'parsed', value: request.body }
}

const HOW_TO_KEEP = 'In Nest: NestFactory.create(AppModule, { rawBody: true }).'

/**
 * The headers that a reply of ours keeps: what middleware and guards have set. Those of `@Header` are the handler's, though
 * Nest sets them first; a refusal has nothing to do with them, and a replay has those that are kept anyway.
 */
export function headersBefore(response: NestResponse, handlers: readonly string[]): Headers {
  const entries = Object.entries(response.getHeaders() as Headers)
  return Object.fromEntries(entries.filter(([name]) => !handlers.includes(name.toLowerCase())))
}

/**
 * Has everything that is still written to an answered response go nowhere. Nest goes on after a replay as after a handler
 * that returned nothing, so that interceptors see an end and let go of what they hold; the response that it then makes
 * must neither be sent nor fail. Letting Nest wait for ever was dropped for this: `finalize` of other interceptors
 * never ran.
 */
export function silence(response: NestResponse): void {
  const raw = rawOf<ServerResponse>(response)
  let status = raw.statusCode
  const silence: Silence = { lifted: false }
  const nothing = (target: object, names: readonly string[], result: unknown) => {
    for (const name of names) {
      const original: unknown = Reflect.get(target, name)
      const value = (...given: unknown[]) =>
        silence.lifted ? Reflect.apply(original as () => unknown, target, given) : result
      Object.defineProperty(target, name, { value, configurable: true, writable: true })
    }
  }
  nothing(raw, ['writeHead', 'setHeader', 'setHeaders', 'appendHeader', 'removeHeader', 'end'], raw)
  nothing(raw, ['write'], true)
  nothing(raw, ['flushHeaders'], undefined)
  // Access logs read it when the response has left.
  const setStatus = (value: number) => {
    if (silence.lifted) status = value
  }
  Object.defineProperty(raw, 'statusCode', { get: () => status, set: setStatus, configurable: true })
  Object.assign(raw, { [SILENCE]: silence })
  // Fastify would log that it was sent twice.
  if (response !== (raw as unknown)) nothing(response, ['send'], response)
}
