import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Router from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware, Next } from 'koa'
import bodyParser from 'koa-bodyparser'
import { idempotent } from '../../../src/http/adapters/koa/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import {
  ACCOUNT_HEADER,
  type AdapterUnderTest,
  EARLY_HEADER,
  type Listening,
  PARSER_MAX_BYTES,
  type Result,
  type Route,
} from '../under-test.ts'
import { statusOf } from './fetch.ts'
import { listening } from './listen.ts'

/** Makes an adapter under test of one of the versions. */
export function koaUnderTest(name: string, Application: typeof Koa): AdapterUnderTest {
  return { name, lacks: LACKS, serve: (once, routes) => serve(Application, once, routes) }
}

const LACKS = {
  reply_sent: 'The reply of a handler is what ctx.body holds when it has returned.',
} as const

async function serve(
  Application: typeof Koa,
  once: Onlyonce<PostgresTx>,
  routes: readonly Route[],
): Promise<Listening> {
  const app = new Application()
  app.silent = true
  app.use(async (ctx, next) => {
    ctx.set(...EARLY_HEADER)
    try {
      await next()
    } catch (error) {
      // As applications answer errors themselves: Koa's own answer would take all headers off.
      ctx.status = statusOf(error)
      ctx.body = 'Error'
      ctx.app.emit('error', error, ctx)
    }
  })
  for (const route of routes) {
    const router = new Router({ ...(route.prefix !== '' && { prefix: route.prefix }) })
    const method = route.method.toLowerCase() as 'post'
    router[method](route.path, ...(stepsOf(once, route) as Parameters<typeof router.post>[1][]))
    app.use(router.routes() as unknown as Middleware)
  }
  return await listening(createServer(app.callback()))
}

function stepsOf(once: Onlyonce<PostgresTx>, route: Route): Middleware[] {
  const account = (ctx: Context) => ctx.get(ACCOUNT_HEADER) || undefined
  const layer = idempotent(once, { account, ...route.policy }) as Middleware
  const parser = bodyParser({
    enableTypes: ['json', 'text'],
    jsonLimit: `${PARSER_MAX_BYTES}b`,
    strict: false,
  })
  const forget = async (ctx: Context, next: Next) => {
    Object.assign(ctx.request, { rawBody: undefined })
    await next()
  }
  const handler = (ctx: Context) => handle(route, ctx)
  switch (route.order) {
    case 'layer_first':
      return [layer, parser, handler]
    case 'parser_first':
      return [parser, forget, layer, handler]
    case 'parser_first_bytes_kept':
      return [parser, layer, handler]
    default:
      return route.order satisfies never
  }
}

async function handle(route: Route, ctx: Context): Promise<void> {
  const { body, rawBody } = ctx.request as { body?: unknown; rawBody?: unknown }
  const result = await route.handle({
    // Without a body the parser says that there is an empty object.
    body: rawBody === undefined && isEmpty(body) ? undefined : body,
    params: ctx.params,
    query: ctx.query,
    once: ctx.idempotency ?? null,
    setHeader: (name, value) => ctx.set(name, value),
  })
  await perform(result, ctx)
}

function isEmpty(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Object.keys(body).length === 0
}

async function perform(result: Result, ctx: Context): Promise<void> {
  if ('status' in result) {
    ctx.status = result.status
    for (const [name, value] of result.headers ?? []) ctx.append(name, value)
  }
  switch (result.do) {
    case 'json':
      ctx.type = 'application/json'
      ctx.body = JSON.stringify(result.value)
      return
    case 'text':
      ctx.body = result.text
      return
    case 'empty':
      ctx.body = null
      ctx.status = result.status
      return
    case 'end':
      ctx.respond = false
      ctx.res.statusCode = 200
      ctx.res.end()
      return
    case 'redirect':
      ctx.redirect(result.location)
      ctx.status = result.status
      return
    case 'binary':
      ctx.type = result.type
      ctx.body = result.bytes
      return
    case 'chunks':
      ctx.type = result.type
      ctx.body = Readable.from(eachInItsTurn(result.chunks), { objectMode: false })
      return
    case 'stream':
      ctx.type = result.type
      ctx.body = result.stream
      return
    case 'json_and_throw':
    case 'throw':
    case 'reject':
    case 'next':
      throw result.error
    case 'not_found':
      ctx.status = 404
      return
    default:
      result satisfies never
  }
}

async function* eachInItsTurn(chunks: readonly (string | Buffer)[]): AsyncGenerator<string | Buffer> {
  for (const chunk of chunks) {
    yield chunk
    await nextTurn()
  }
}
