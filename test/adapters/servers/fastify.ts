import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import { idempotency, idempotent } from '../../../src/http/adapters/fastify/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import {
  ACCOUNT_HEADER,
  type AdapterUnderTest,
  EARLY_HEADER,
  type HeaderList,
  type Listening,
  PARSER_MAX_BYTES,
  type Result,
  type Route,
} from '../under-test.ts'
import { unpackStream } from './unpacked.ts'

export const fastifyUnderTest: AdapterUnderTest = {
  name: 'Fastify 5',
  lacks: {
    layer_first:
      'The parser runs before the key is claimed, and what it refuses is refused in its own words.',
    parser_first: 'The plugin sees the bytes of every body that the parser reads.',
  },
  serve,
}

async function serve(once: Onlyonce<PostgresTx>, routes: readonly Route[]): Promise<Listening> {
  const app = fastify({ bodyLimit: PARSER_MAX_BYTES, forceCloseConnections: true })
  app.addHook('onRequest', async (_, reply) => {
    reply.header(...EARLY_HEADER)
  })
  // As plugins do it that unpack requests.
  app.addHook('preParsing', async (request, _reply, payload) =>
    unpackStream(request.headers, payload as Readable),
  )
  // Forms are left to the handler, which is to find them unread.
  app.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null))
  const account = (request: FastifyRequest) => request.headers[ACCOUNT_HEADER] as string | undefined
  await app.register(idempotency, { once, account })
  for (const route of routes) {
    if (route.prefix === '') addRoute(app, route)
    else app.register(async (scope) => addRoute(scope, route), { prefix: route.prefix })
  }
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

function addRoute(app: FastifyInstance, route: Route): void {
  const { method, path: url, policy } = route
  const { operation } = policy
  if (typeof operation === 'object') {
    app.route({ method, url, ...idempotent({ ...policy, operation } as { operation: typeof operation }) })
    return
  }
  const handler = (request: FastifyRequest, reply: FastifyReply) => handle(route, request, reply)
  app.route({ method, url, preHandler: idempotent(policy as object), handler })
}

function handle(route: Route, request: FastifyRequest, reply: FastifyReply): unknown {
  const answer = route.handle({
    body: request.body,
    params: request.params as Record<string, string>,
    query: request.query as Record<string, unknown>,
    once: request.idempotency ?? null,
    setHeader: (name, value) => reply.header(name, value),
  })
  return answer instanceof Promise ? answer.then((result) => perform(result, reply)) : perform(answer, reply)
}

function perform(result: Result, reply: FastifyReply): unknown {
  if ('status' in result) {
    reply.code(result.status)
    setHeaders(reply, result.headers ?? [])
  }
  switch (result.do) {
    case 'json':
      return reply.type('application/json').send(JSON.stringify(result.value))
    case 'text':
      return reply.type('text/plain').send(result.text)
    case 'empty':
      return reply.send()
    case 'redirect':
      return reply.redirect(result.location, result.status)
    case 'binary':
      return reply.type(result.type).send(result.bytes)
    case 'chunks':
      return writeAll(reply, result.type, result.chunks)
    case 'stream':
      return reply.type(result.type).send(result.stream)
    case 'end':
      return endRaw(reply)
    case 'json_and_throw':
      reply.type('application/json').send(JSON.stringify(result.value))
      throw result.error
    case 'throw':
      throw result.error
    case 'reject':
    case 'next':
      return Promise.reject(result.error)
    case 'not_found':
      return reply.callNotFound()
    default:
      return result satisfies never
  }
}

/** Past the framework, as whoever streams events does it. */
async function writeAll(
  reply: FastifyReply,
  type: string,
  chunks: readonly (string | Buffer)[],
): Promise<FastifyReply> {
  reply.hijack()
  const headers = Object.entries(reply.getHeaders()).filter(([, value]) => value !== undefined)
  reply.raw.writeHead(reply.statusCode, { ...Object.fromEntries(headers), 'content-type': type } as never)
  for (const chunk of chunks) {
    reply.raw.write(chunk)
    await nextTurn()
  }
  reply.raw.end()
  return reply
}

function endRaw(reply: FastifyReply): FastifyReply {
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  reply.raw.end()
  return reply.hijack()
}

function setHeaders(reply: FastifyReply, headers: HeaderList): void {
  for (const [name, value] of headers) {
    const before = reply.getHeader(name)
    // Fastify appends cookies by itself, and replaces everything else.
    if (before === undefined || name.toLowerCase() === 'set-cookie') reply.header(name, value)
    else reply.header(name, [before, value].flat())
  }
}
