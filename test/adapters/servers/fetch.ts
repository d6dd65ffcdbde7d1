import type { Server } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createAdaptorServer } from '@hono/node-server'
import { idempotent } from '../../../src/http/adapters/fetch/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import {
  ACCOUNT_HEADER,
  type AdapterUnderTest,
  EARLY_HEADER,
  type Listening,
  nameOf,
  type Once,
  type Result,
  type Route,
} from '../under-test.ts'
import { listening } from './listen.ts'
import { unpacked } from './unpacked.ts'

type Fetch = (request: Request) => Response | Promise<Response>

interface Params {
  readonly params: Promise<Record<string, string>>
}

/** How a route's parameters reach its handler, if they do. */
type GiveParams = (params: Record<string, string>) => Partial<Params>

/** What plain handlers do not have, whoever serves them. */
const LACKING = {
  reply_sent: 'The reply of a handler is what it returns.',
  parser_first: 'There is no body parser: the handler reads the request itself.',
  bytes_kept: 'There is no body parser: the handler reads the request itself.',
  own_parser: 'There is no body parser: the handler reads the request itself.',
  error_reply: 'What a handler throws is thrown on to its caller, and is answered there.',
  not_found: 'There is no framework that a handler could leave a request to.',
} as const

/** A plain Request => Response handler, behind a server that knows no more than that. */
export const fetchUnderTest: AdapterUnderTest = {
  name: 'fetch',
  lacks: {
    ...LACKING,
    route_pattern: 'A plain handler is told nothing but the path.',
  },
  serve: (once, routes) => listen(fetchOf(once, routes, () => ({}))),
}

/** A route of Next.js: a plain handler that is given a promise of its parameters. */
export const nextUnderTest: AdapterUnderTest = {
  name: 'Next.js',
  lacks: { ...LACKING, route_pattern: 'A route of Next.js is told its parameters, not its pattern.' },
  serve: (once, routes) => listen(fetchOf(once, routes, (params) => ({ params: Promise.resolve(params) }))),
}

/** Serves what makes responses of requests over a real socket. */
export function listen(fetch: Fetch): Promise<Listening> {
  return listening(createAdaptorServer({ fetch }) as Server)
}

/** A router as small as can be: the first route that matches. */
function fetchOf(once: Onlyonce<PostgresTx>, routes: readonly Route[], give: GiveParams): Fetch {
  const known = routes.map((route) => {
    const pattern = `${route.prefix}${route.path}`.replace(/:(\w+)/g, '(?<$1>[^/]+)')
    return { route, pattern: new RegExp(`^${pattern}$`), handler: handlerOf(once, route) }
  })
  return async (request) => {
    const { pathname } = new URL(request.url)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const found = known.find(({ route, pattern }) => route.method === method && pattern.test(pathname))
    if (found === undefined) return early(new Response('Not Found', { status: 404 }))
    const params = { ...found.pattern.exec(pathname)?.groups }
    for (const [name, value] of Object.entries(params)) params[name] = decodeURIComponent(value)
    const context = { found: params, ...give(params) }
    try {
      return early(await found.handler(request, context))
    } catch (error) {
      return early(new Response('Error', { status: statusOf(error) }))
    }
  }
}

function handlerOf(once: Onlyonce<PostgresTx>, route: Route) {
  const account = (request: Request) => request.headers.get(ACCOUNT_HEADER)
  type Context = {
    idempotency: Once | null
    params?: Promise<Record<string, string>>
    found?: Record<string, string>
  }
  const options = { account, operation: nameOf(route), ...route.policy }
  const handler = async (request: Request, context: Context) => {
    const headers = new Headers()
    const input = {
      body: await parse(request),
      params: (await context.params) ?? context.found ?? {},
      query: Object.fromEntries(new URL(request.url).searchParams),
      once: context.idempotency,
      setHeader: (name: string, value: string) => headers.set(name, value),
    }
    return respond(await route.handle(input), headers)
  }
  const given = typeof options.operation === 'object' ? undefined : handler
  return idempotent<PostgresTx>(once, options as never, given as never) as (
    request: Request,
    context: object,
  ) => Promise<Response>
}

/** JSON and text as they are, nothing else. */
async function parse(request: Request): Promise<unknown> {
  const bytes = Buffer.from(await request.arrayBuffer())
  const text = unpacked(bytes, request.headers.get('content-encoding')).toString()
  if (text === '') return undefined
  return request.headers.get('content-type')?.startsWith('application/json') ? JSON.parse(text) : text
}

/** What a handler answers, as a Response. */
export function respond(result: Result, given: Headers): Response {
  const headers = new Headers(given)
  if ('headers' in result) for (const [name, value] of result.headers ?? []) headers.append(name, value)
  if ('type' in result) headers.set('content-type', result.type)
  const init = { headers, ...('status' in result && { status: result.status }) }
  switch (result.do) {
    case 'json':
      return Response.json(result.value, init)
    case 'text':
      return new Response(result.text, init)
    case 'empty':
    case 'end':
      return new Response(null, init)
    case 'redirect':
      headers.set('location', result.location)
      return new Response(null, init)
    case 'binary':
      return new Response(new Uint8Array(result.bytes), init)
    case 'chunks':
      return new Response(streamOf(result.chunks), init)
    case 'stream':
      return new Response(Readable.toWeb(result.stream) as ReadableStream<Uint8Array>, init)
    case 'not_found':
      return new Response('Not Found', { status: 404 })
    case 'json_and_throw':
    case 'throw':
    case 'reject':
    case 'next':
      throw result.error
    default:
      return result satisfies never
  }
}

function streamOf(chunks: readonly (string | Buffer)[]): ReadableStream<Uint8Array> {
  const rest = [...chunks]
  return new ReadableStream({
    async pull(controller) {
      await nextTurn()
      const chunk = rest.shift()
      if (chunk === undefined) controller.close()
      else controller.enqueue(new Uint8Array(Buffer.from(chunk as string)))
    },
  })
}

export function statusOf(error: unknown): number {
  const status = (error as { status?: unknown } | null)?.status
  return typeof status === 'number' ? status : 500
}

function early(response: Response): Response {
  response.headers.set(...EARLY_HEADER)
  return response
}
