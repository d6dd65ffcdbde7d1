import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { type IdempotencyVariables, idempotent } from '../../../src/http/adapters/hono/index.ts'
import type { Onlyonce } from '../../../src/index.ts'
import type { PostgresTx } from '../../../src/store/postgres/index.ts'
import {
  ACCOUNT_HEADER,
  type AdapterUnderTest,
  EARLY_HEADER,
  PARSER_MAX_BYTES,
  type Result,
  type Route,
} from '../under-test.ts'
import { listen, respond, statusOf } from './fetch.ts'
import { unpacked } from './unpacked.ts'

type AppEnv = { Variables: IdempotencyVariables<PostgresTx> & { body: unknown } }

export const honoUnderTest: AdapterUnderTest = {
  name: 'Hono 4',
  lacks: {
    reply_sent: 'The reply of a handler is what it returns.',
    parser_first: 'Hono keeps the text that c.req has read.',
  },
  serve: (once, routes) => listen(appOf(once, routes).fetch),
}

function appOf(once: Onlyonce<PostgresTx>, routes: readonly Route[]): Hono<AppEnv> {
  const app = new Hono<AppEnv>()
  app.use(async (c, next) => {
    c.res.headers.set(...EARLY_HEADER)
    await next()
  })
  app.onError((error, c) => c.text('Error', statusOf(error) as ContentfulStatusCode))
  for (const route of routes) {
    const target = route.prefix === '' ? app : new Hono<AppEnv>()
    target.on([route.method], [route.path], ...stepsOf(once, route), (c) => handle(route, c))
    if (target !== app) app.route(route.prefix, target)
  }
  return app
}

function stepsOf(once: Onlyonce<PostgresTx>, route: Route): MiddlewareHandler<AppEnv>[] {
  const account = (c: Context) => c.req.header(ACCOUNT_HEADER)
  const layer = idempotent(once, { account, ...route.policy }) as unknown as MiddlewareHandler<AppEnv>
  const limit = bodyLimit({ maxSize: PARSER_MAX_BYTES })
  return route.order === 'layer_first' ? [layer, limit, parse] : [limit, parse, layer]
}

/** What a validator does: it reads the body by `c.req`, and refuses what is malformed. */
const parse: MiddlewareHandler<AppEnv> = async (c, next) => {
  const isJson = c.req.header('content-type')?.startsWith('application/json') === true
  const hasBody = isJson || c.req.header('content-type') !== undefined
  const bytes = hasBody ? Buffer.from(await c.req.arrayBuffer()) : Buffer.alloc(0)
  try {
    const text = unpacked(bytes, c.req.header('content-encoding')).toString()
    if (text !== '') c.set('body', isJson ? JSON.parse(text) : text)
  } catch {
    return c.text('Malformed JSON', 400)
  }
  await next()
}

async function handle(route: Route, c: Context<AppEnv>): Promise<Response> {
  const result = await route.handle({
    body: c.get('body'),
    params: c.req.param() as Record<string, string>,
    query: c.req.query(),
    once: c.get('idempotency') ?? null,
    setHeader: (name, value) => c.header(name, value),
  })
  return await perform(result, c)
}

async function perform(result: Result, c: Context): Promise<Response> {
  if (result.do === 'not_found') return await c.notFound()
  if (result.do === 'redirect') return c.redirect(result.location, result.status as 302)
  if (result.do !== 'json') return respond(result, new Headers())
  for (const [name, value] of result.headers ?? []) c.header(name, value, { append: true })
  return c.json(result.value as object, result.status as ContentfulStatusCode)
}
