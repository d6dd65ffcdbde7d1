import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { idempotent, keepRawBody } from '../../../src/http/adapters/node/index.ts'
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

export const nodeUnderTest: AdapterUnderTest = {
  name: 'node:http',
  lacks: {
    route_pattern: 'node:http has no routes: the path stands for itself.',
    own_parser: 'node:http parses no bodies.',
    not_found: 'node:http answers nothing by itself.',
  },
  serve,
}

type Parsed = IncomingMessage & { body?: unknown }
type Handler = (request: Parsed, response: ServerResponse) => void

interface Mounted {
  readonly route: Route
  readonly pattern: RegExp
  readonly handler: Handler
}

async function serve(once: Onlyonce<PostgresTx>, routes: readonly Route[]): Promise<Listening> {
  const mounted = routes.map((route) => mount(once, route))
  const server = createServer((request, response) => {
    response.setHeader(...EARLY_HEADER)
    const path = request.url!.split('?')[0]!
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const found = mounted.find(({ route, pattern }) => route.method === method && pattern.test(path))
    if (found !== undefined) return found.handler(request, response)
    response.statusCode = 404
    response.end('Not Found')
  })
  return await listening(server)
}

function mount(once: Onlyonce<PostgresTx>, route: Route): Mounted {
  const source = `${route.prefix}${route.path}`.replaceAll(/:(\w+)/g, '(?<$1>[^/]+)')
  const pattern = new RegExp(`^${source}$`)
  const account = (request: IncomingMessage) => request.headers[ACCOUNT_HEADER] as string | undefined
  const options = { account, operation: nameOf(route), ...route.policy }
  const given = (request: Parsed, response: ServerResponse, context: Once | null) =>
    answer(route, pattern, request, response, context)
  const handle = typeof options.operation === 'object' ? undefined : given
  const layer: Handler = idempotent<PostgresTx>(once, options as never, handle as never)
  const handler: Handler =
    route.order === 'layer_first'
      ? layer
      : (request, response) =>
          void readAll(request).then((bytes) => {
            if (route.order === 'parser_first_bytes_kept') keepRawBody(request, response, bytes)
            request.body = parse(request, bytes)
            layer(request, response)
          })
  return { route, pattern, handler }
}

async function answer(
  route: Route,
  pattern: RegExp,
  request: Parsed,
  response: ServerResponse,
  once: Once | null,
): Promise<void> {
  const [path = '', query = ''] = request.url!.split('?')
  const body = 'body' in request ? request.body : parse(request, await readAll(request))
  const result = await route.handle({
    body,
    params: Object.fromEntries(
      Object.entries(pattern.exec(path)?.groups ?? {}).map(([name, value]) => [
        name,
        decodeURIComponent(value),
      ]),
    ),
    query: Object.fromEntries(new URLSearchParams(query)),
    once,
    setHeader: (name, value) => response.setHeader(name, value),
  })
  await perform(result, response)
}

async function perform(result: Result, response: ServerResponse): Promise<void> {
  if ('status' in result) {
    response.statusCode = result.status
    for (const [name, value] of result.headers ?? []) response.appendHeader(name, value)
  }
  switch (result.do) {
    case 'json':
      response.writeHead(result.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(result.value))
      return
    case 'text':
      response.writeHead(result.status, ['content-type', 'text/plain; charset=utf-8']).end(result.text)
      return
    case 'empty':
    case 'end':
      response.end()
      return
    case 'redirect':
      response.writeHead(result.status, 'Moved', { location: result.location }).end()
      return
    case 'binary':
      response.setHeader('content-type', result.type).end(result.bytes)
      return
    case 'chunks':
      response.setHeader('content-type', result.type)
      for (const chunk of result.chunks) {
        response.write(chunk)
        await nextTurn()
      }
      response.end()
      return
    case 'stream':
      response.setHeader('content-type', result.type)
      result.stream.pipe(response)
      return
    case 'json_and_throw':
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(result.value))
      throw result.error
    case 'throw':
    case 'reject':
    case 'next':
      throw result.error
    case 'not_found':
      throw new Error('This framework has no 404 of its own.')
    default:
      result satisfies never
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return unpacked(Buffer.concat(chunks), request.headers['content-encoding'])
}

function parse(request: IncomingMessage, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  return request.headers['content-type']?.startsWith('application/json')
    ? JSON.parse(bytes.toString())
    : bytes.toString()
}
