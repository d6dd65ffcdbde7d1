import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type ArgumentsHost,
  Body,
  Catch,
  Controller,
  HttpException,
  Module,
  NotFoundException,
  Param,
  Query,
  RequestMapping,
  RequestMethod,
  Res,
  StreamableFile,
  type Type,
} from '@nestjs/common'
import { BaseExceptionFilter, NestFactory } from '@nestjs/core'
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import type { Response } from 'express'
import type { FastifyReply } from 'fastify'
import { Idempotency, Idempotent, OnlyonceModule } from '../../../src/http/adapters/nest/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import {
  ACCOUNT_HEADER,
  type AdapterUnderTest,
  EARLY_HEADER,
  type Listening,
  type Once as OnceGiven,
  PARSER_MAX_BYTES,
  type Result,
  type Route,
} from '../under-test.ts'
import { unpackStream } from './unpacked.ts'

type Reply = Response | FastifyReply
export type Platform = (
  module: Type,
  rawBody: boolean,
) => Promise<NestExpressApplication | NestFastifyApplication>

/** Makes an adapter under test of one of the platforms. */
export function nestUnderTest(name: string, create: Platform): AdapterUnderTest {
  const lacks = { layer_first: 'Nest parses before any controller is asked.' }
  return { name, lacks, serve: (once, routes) => serve(create, once, routes) }
}

export const onExpress: Platform = async (module, rawBody) => {
  const app = await NestFactory.create<NestExpressApplication>(module, new ExpressAdapter(), {
    rawBody,
    logger: false,
    abortOnError: false,
    forceCloseConnections: true,
  })
  app.use((_: unknown, response: Response, next: () => void) => {
    response.setHeader(...EARLY_HEADER)
    next()
  })
  app.useBodyParser('text')
  return app
}

export const onFastify: Platform = async (module, rawBody) => {
  const adapter = new FastifyAdapter({ bodyLimit: PARSER_MAX_BYTES })
  const app = await NestFactory.create<NestFastifyApplication>(module, adapter, {
    rawBody,
    logger: false,
    abortOnError: false,
    forceCloseConnections: true,
  })
  adapter.getInstance().addHook('onRequest', async (_, reply) => {
    reply.header(...EARLY_HEADER)
  })
  // As plugins do it that unpack requests.
  adapter
    .getInstance()
    .addHook('preParsing', async (request, _, payload) => unpackStream(request.headers, payload as Readable))
  // Nest registers its own parsers only where none was given; this one is beside them.
  adapter.registerParserMiddleware('', rawBody)
  adapter.getInstance().removeContentTypeParser('text/plain')
  app.useBodyParser('text/plain', {}, (_, body, done) => done(null, body.toString()))
  app.useBodyParser('multipart/form-data', {}, (_, body, done) => done(null, body.toString()))
  return app
}

async function serve(
  create: Platform,
  once: Onlyonce<PostgresTx>,
  routes: readonly Route[],
): Promise<Listening> {
  // biome-ignore lint/suspicious/noExplicitAny: each platform has a request of its own.
  const account = (request: any): string | undefined => request.headers[ACCOUNT_HEADER]

  @Module({
    imports: [OnlyonceModule.forRoot({ once, account })],
    controllers: routes.map(controllerOf),
  })
  class AppModule {}

  const app = await create(
    AppModule,
    routes.every(({ order }) => order !== 'parser_first'),
  )
  app.useGlobalFilters(new StatusFilter(app.getHttpAdapter()))
  await app.listen(0, '127.0.0.1')
  return { port: (app.getHttpServer().address() as AddressInfo).port, close: () => app.close() }
}

function controllerOf(route: Route): Type {
  @Controller(route.prefix)
  class Things {
    @RequestMapping({ path: route.path, method: RequestMethod[route.method] })
    @Idempotent(route.policy as object)
    handle(
      @Body() body: unknown,
      @Param() params: Record<string, string>,
      @Query() query: Record<string, unknown>,
      @Res({ passthrough: true }) reply: Reply,
      @Idempotency() once: OnceGiven | undefined,
    ) {
      const setHeader = (name: string, value: string) => reply.header(name, value)
      const answer = route.handle({ body, params, query, once: once ?? null, setHeader })
      return answer instanceof Promise
        ? answer.then((result) => perform(result, reply))
        : perform(answer, reply)
    }
  }
  return Things
}

/** Nest knows the status of its own exceptions; whoever throws others tells it with a filter. */
@Catch()
class StatusFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    const status = (error as { status?: unknown } | null)?.status
    const known = typeof status === 'number' && error instanceof Error && !(error instanceof HttpException)
    super.catch(known ? new HttpException(error.message, status) : error, host)
  }
}

function perform(result: Result, reply: Reply): unknown {
  if ('status' in result) {
    reply.status(result.status)
    for (const [name, value] of result.headers ?? []) append(reply, name, value)
  }
  switch (result.do) {
    case 'json':
      return result.value
    case 'text':
      reply.type('text/plain')
      return result.text
    case 'empty':
    case 'end':
      return undefined
    case 'redirect':
      reply.header('location', result.location)
      return undefined
    case 'binary':
      return new StreamableFile(result.bytes, { type: result.type })
    case 'chunks':
      return new StreamableFile(Readable.from(eachInItsTurn(result.chunks), { objectMode: false }), {
        type: result.type,
      })
    case 'stream':
      return new StreamableFile(result.stream, { type: result.type })
    case 'json_and_throw':
      reply.type('application/json').send(JSON.stringify(result.value))
      throw result.error
    case 'throw':
      throw result.error
    case 'reject':
    case 'next':
      return Promise.reject(result.error)
    case 'not_found':
      throw new NotFoundException()
    default:
      return result satisfies never
  }
}

async function* eachInItsTurn(chunks: readonly (string | Buffer)[]): AsyncGenerator<string | Buffer> {
  for (const chunk of chunks) {
    yield chunk
    await nextTurn()
  }
}

function append(reply: Reply, name: string, value: string): void {
  if ('append' in reply) reply.append(name, value)
  else {
    const before = reply.getHeader(name)
    // Fastify appends cookies by itself, and replaces everything else.
    if (before === undefined || name.toLowerCase() === 'set-cookie') reply.header(name, value)
    else reply.header(name, [before, value].flat())
  }
}
