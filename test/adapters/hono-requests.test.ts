import { randomUUID } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { cors } from 'hono/cors'
import { streamText } from 'hono/streaming'
import { beforeAll, describe, expect, test } from 'vitest'
import { type IdempotencyVariables, idempotent } from '../../src/http/adapters/hono/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop } from '../contract/shop.ts'

type AppEnv = { Variables: IdempotencyVariables<PostgresTx> }

let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  once = (await openShop()).open()
})

const layer = (policy: RoutePolicy = {}) => idempotent(once, { account: () => 'acct_1', ...policy })

const post = async (app: Hono<AppEnv>, path: string, init: RequestInit & { key?: string } = {}) => {
  const { key = randomUUID(), headers, ...rest } = init
  return await app.request(path, { method: 'POST', ...rest, headers: { 'Idempotency-Key': key, ...headers } })
}

const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code

const JSON_TYPE = { 'content-type': 'application/json' }

test('a streamed reply is sent whole, and says so once', async () => {
  const app = new Hono<AppEnv>().post('/', layer(), (c) =>
    streamText(c, async (stream) => void (await stream.write('done'))),
  )
  const response = await post(app, '/')
  expect(await response.text()).toBe('done')
  expect(response.headers.get('transfer-encoding')).toBeNull()
})

describe('the body', () => {
  const reads: Record<string, (c: Context) => Promise<unknown>> = {
    json: (c) => c.req.json(),
    text: (c) => c.req.text(),
    arrayBuffer: async (c) => Buffer.from(await c.req.arrayBuffer()).toString(),
    blob: async (c) => await (await c.req.blob()).text(),
    'raw.json': (c) => c.req.raw.json(),
  }

  test.each(Object.keys(reads))('can be read by the handler: %s', async (how) => {
    const app = new Hono<AppEnv>().post('/', layer(), async (c) => c.json(await reads[how]!(c)))
    const sent = await post(app, '/', { body: '{"amount": 5}', headers: JSON_TYPE })
    expect([sent.status, await sent.json()]).toEqual([
      200,
      how.endsWith('json') ? { amount: 5 } : '{"amount": 5}',
    ])
  })

  test('can be read as a form', async () => {
    const body = new FormData()
    body.set('amount', '5')
    const app = new Hono<AppEnv>().post('/', layer(), async (c) => c.json(await c.req.parseBody()))
    const sent = await post(app, '/', { body })
    expect(await sent.json()).toEqual({ amount: '5' })
  })

  test.each(['json', 'text', 'arrayBuffer', 'blob'])('may have been read before: %s', async (how) => {
    const key = randomUUID()
    const app = new Hono<AppEnv>()
    app.post(
      '/',
      async (c, next) => {
        await reads[how]!(c)
        await next()
      },
      layer(),
      async (c) => c.json(await c.req.json()),
    )
    const send = (body: string) => post(app, '/', { key, body, headers: JSON_TYPE })
    expect(await (await send('{"amount": 5}')).json()).toEqual({ amount: 5 })
    expect((await send('{"amount": 5}')).headers.get('idempotent-replayed')).toBe('true')
    expect((await send('{"amount": 6}')).status).toBe(422)
  })

  const readBefore = (read: (c: Context) => Promise<unknown>, policy: RoutePolicy) => {
    const app = new Hono<AppEnv>()
    app.use(async (c, next) => {
      await read(c)
      await next()
    })
    return app.post('/', layer(policy), (c) => c.text('done'))
  }

  test.each([
    ['by c.req.raw', (c: Context) => c.req.raw.text(), {}],
    [
      'by c.req.raw, and parsed is enough',
      (c: Context) => c.req.raw.text(),
      { fingerprint: { body: 'parsed' } },
    ],
    ['as a form', (c: Context) => c.req.formData(), {}],
  ] as const)('is missed where it was read %s', async (_, read, policy) => {
    const body = new URLSearchParams({ amount: '5' })
    const sent = await post(readBefore(read, policy), '/', { body })
    expect([sent.status, await codeOf(sent)]).toEqual([500, 'raw_body_missing'])
  })

  test('is what a parser of your own has left for c.req.json(), where parsed is enough', async () => {
    const app = readBefore(
      async (c) => Object.assign(c.req.bodyCache, { json: Promise.resolve(await c.req.raw.json()) }),
      { fingerprint: { body: 'parsed' } },
    )
    const key = randomUUID()
    const send = (body: string) => post(app, '/', { key, body, headers: JSON_TYPE })
    expect((await send('{"amount":5,"to":"bob"}')).status).toBe(200)
    expect((await send('{"to":"bob","amount":5}')).headers.get('idempotent-replayed')).toBe('true')
    expect((await send('{"to":"bob","amount":6}')).status).toBe(422)
  })

  test('is the fields of a form that was read, where parsed is enough', async () => {
    const app = readBefore((c) => c.req.formData(), { fingerprint: { body: 'parsed' } })
    const key = randomUUID()
    const send = (amount: string) => post(app, '/', { key, body: new URLSearchParams({ amount }) })
    expect((await send('5')).status).toBe(200)
    expect((await send('5')).headers.get('idempotent-replayed')).toBe('true')
    expect((await send('6')).status).toBe(422)
  })

  test('is missed where it holds files, or was no text', async () => {
    const files = new FormData()
    files.set('receipt', new Blob(['a']), 'a.txt')
    const parsed: RoutePolicy = { fingerprint: { body: 'parsed' } }
    const ofFiles = await post(
      readBefore((c) => c.req.formData(), parsed),
      '/',
      { body: files },
    )
    expect(await codeOf(ofFiles)).toBe('raw_body_missing')
    const ofBytes = await post(
      readBefore((c) => c.req.text(), {}),
      '/',
      { body: new Uint8Array([0xff]) },
    )
    expect(await codeOf(ofBytes)).toBe('raw_body_missing')
  })
})

describe('the route', () => {
  const told = (c: Context<AppEnv>) => c.json({ operation: c.var.idempotency?.operation })

  test('is the pattern, with what sub-apps are mounted at', async () => {
    const orders = new Hono<AppEnv>().post('/orders/:id', layer(), told)
    const app = new Hono<AppEnv>().route('/v1', orders)
    const sent = await post(app, '/v1/orders/7')
    expect(await sent.json()).toEqual({ operation: 'POST /v1/orders/:id' })
  })

  test('is that of the handler where the layer stands before many', async () => {
    const app = new Hono<AppEnv>().basePath('/v1')
    app.use('*', layer())
    app.use('/orders/*', async (_, next) => await next())
    app.post('/orders/:id', told)
    app.post('/orders/*', (c) => c.text('not here'))
    const key = randomUUID()
    const first = await post(app, '/v1/orders/7', { key })
    expect(await first.json()).toEqual({ operation: 'POST /v1/orders/:id' })
    // One operation and one key, and yet another order.
    expect((await post(app, '/v1/orders/8', { key })).status).toBe(422)
    expect((await post(app, '/v1/orders/7', { key })).headers.get('idempotent-replayed')).toBe('true')
  })

  test('leaves the handler its own parameters', async () => {
    const app = new Hono<AppEnv>()
    app.use('/:shop/*', layer())
    app.post('/:shop/:id', (c) => c.json(c.req.param()))
    expect(await (await post(app, '/berlin/7')).json()).toEqual({ shop: 'berlin', id: '7' })
  })

  test('tells requests apart by what a star stands for', async () => {
    const app = new Hono<AppEnv>().post('/files/*', layer({ operation: 'files.put' }), (c) => c.text('kept'))
    const key = randomUUID()
    expect((await post(app, '/files/a', { key })).status).toBe(200)
    expect((await post(app, '/files/b', { key })).status).toBe(422)
  })

  test('is the path where nothing but middleware matches', async () => {
    const app = new Hono<AppEnv>()
    app.use('*', layer())
    const sent = await post(app, '/nowhere')
    expect([sent.status, await sent.text()]).toEqual([404, '404 Not Found'])
  })
})

describe('the headers', () => {
  test('of the first reply are all there, and cookies of it are not replayed', async () => {
    const key = randomUUID()
    const app = new Hono<AppEnv>()
    app.use(cors())
    app.use(async (c, next) => {
      c.header('x-request-id', randomUUID())
      await next()
    })
    app.post('/', layer(), (c) => {
      c.header('set-cookie', 'a=1', { append: true })
      c.header('set-cookie', 'b=2', { append: true })
      c.header('location', '/orders/7')
      return c.json({ id: 7 }, 201)
    })
    const first = await post(app, '/', { key })
    expect(first.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
    const again = await post(app, '/', { key })
    expect(again.headers.getSetCookie()).toEqual([])
    for (const name of ['location', 'content-type', 'access-control-allow-origin']) {
      expect([name, again.headers.get(name)]).toEqual([name, first.headers.get(name)])
    }
    expect(first.headers.get('access-control-allow-origin')).toBe('*')
    expect(again.headers.get('x-request-id')).toMatch(/-/)
    expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'))
  })

  test('of the handler are dropped when its reply is not sent', async () => {
    const app = new Hono<AppEnv>()
    const shop = await openShop()
    const lost = shop.open({ deadlineMs: 300 })
    app.use(cors())
    app.post('/', idempotent(lost, { account: () => 'acct_1' }), async (c) => {
      await shop.observer.query('DROP SCHEMA onlyonce CASCADE')
      c.header('set-cookie', 'a=1')
      return c.json({ id: 7 }, 201)
    })
    const sent = await post(app, '/')
    expect([sent.status, await codeOf(sent)]).toEqual([503, 'outcome_unknown'])
    expect(sent.headers.getSetCookie()).toEqual([])
    expect(sent.headers.get('access-control-allow-origin')).toBe('*')
  })
})
