import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, gzipSync } from 'node:zlib'
import { type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FastifyPolicy, idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { notExecuted } from '../../src/index.ts'
import { catchError, leaveEffect, makeGate, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { Client } from './client.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const account = (request: FastifyRequest) => request.headers['x-account'] as string | undefined

/** An application with the plugin in it; routes are added by the test. */
async function openApp(options: Partial<FastifyPolicy> = {}) {
  const once = shop.open()
  const app = fastify({ bodyLimit: 1_000, forceCloseConnections: true })
  cleanUpLater(() => app.close())
  await app.register(idempotency, { once, account, ...options })
  return { app, once }
}

async function clientOf(app: FastifyInstance): Promise<Client> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return new Client((app.server.address() as { port: number }).port)
}

const codeOf = (text: string) => (JSON.parse(text) as { code: string }).code
const explained = { account: 'acct_1', operation: 'POST /things' }

describe('what the framework refuses claims no key', () => {
  test('validation, the limit of bodies, an unknown media type, and hooks before and after the mark', async () => {
    const { app, once } = await openApp()
    app.addHook('onRequest', async (request, reply) => {
      if (request.headers['x-refuse'] === 'first') return reply.code(401).send()
    })
    const schema = {
      body: { type: 'object', required: ['amount'], properties: { amount: { type: 'integer' } } },
    }
    const refuse = async (request: FastifyRequest) => {
      if (request.headers['x-refuse'] === 'last') throw Object.assign(new Error('no'), { statusCode: 403 })
    }
    app.post('/things', { schema, preHandler: [idempotent(), refuse] }, async () => ({ done: true }))
    const client = await clientOf(app)
    const key = randomUUID()
    const body = { amount: 1 }
    for (const [status, sent] of [
      [401, { body, headers: { 'x-refuse': 'first' } }],
      [403, { body, headers: { 'x-refuse': 'last' } }],
      [400, { body: {} }],
      [400, { body: '{' }],
      [413, { body: { amount: 1, note: 'x'.repeat(1_000) } }],
      [415, { body: 'a', headers: { 'content-type': 'application/pdf' } }],
    ] as const) {
      expect((await client.send({ key, ...sent })).status).toBe(status)
    }
    expect((await once.explain({ ...explained, key })).state).toBe('none')
    expect((await client.send({ key, body })).status).toBe(200)
  })
})

describe('at the start', () => {
  test('a policy that is wrong is told with its route', async () => {
    const { app } = await openApp()
    const wrong = async () =>
      app.post('/v1/things', { preHandler: idempotent({ final: { abc: 'store' } }) }, noop)
    expect((await catchError(wrong())).message).toContain('POST /v1/things: final names "abc"')
  })

  test('a policy of the plugin that is wrong is told, and so is an account that is none', async () => {
    const once = shop.open()
    const register = (options: object) => fastify().register(idempotency, { once, account, ...options })
    await expect(register({ operation: 'orders.create' })).rejects.toThrow('has no option operation')
    expect((await catchError(Promise.resolve(register({ retentionMs: 0 })))).code).toBe('option_invalid')
    expect((await catchError(Promise.resolve(register({ account: 42 })))).code).toBe('option_invalid')
    expect((await catchError(Promise.resolve(register({ account: '' })))).code).toBe('account_invalid')
  })

  test('a route that the plugin has not seen runs nothing', async () => {
    const app = fastify({ forceCloseConnections: true })
    cleanUpLater(() => app.close())
    let runs = 0
    app.register(idempotency, { once: shop.open(), account })
    app.post('/things', { preHandler: idempotent() }, async () => {
      runs += 1
      return {}
    })
    const answer = await (await clientOf(app)).send()
    expect([answer.status, runs]).toEqual([500, 0])
    expect(answer.text).toContain('await app.register')
  })

  test('a policy of the plugin is that of its routes, which may differ, also in whose request it is', async () => {
    const { app } = await openApp({ key: 'optional' })
    const own = idempotent({ key: 'required', account: () => 'acct_2' })
    app.post('/loose', { preHandler: idempotent() }, async (request) => request.idempotency ?? 'free')
    app.post('/strict', { preHandler: own }, async (request) => request.idempotency?.account)
    const client = await clientOf(app)
    expect((await client.send({ path: '/loose', key: null })).text).toBe('free')
    expect((await client.send({ path: '/strict', key: null })).status).toBe(400)
    expect((await client.send({ path: '/strict' })).text).toBe('acct_2')
  })
})

describe('a reply on which an asynchronous onSend hook works', () => {
  const HOOK = { statusCode: 500, error: 'Internal Server Error', message: 'hook' }

  /** A route whose hook waits, and throws where it is told to; `behind` is what the handler does after it has sent its reply. */
  async function openHooked(
    protect: 'handler' | 'transaction',
    hook: (count: number) => unknown,
    behind: (() => unknown) | null,
  ) {
    const { app, once } = await openApp()
    let hooks = 0
    app.addHook('onSend', async () => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      hooks += 1
      await hook(hooks)
    })
    const work = async (request: FastifyRequest) => {
      const context = request.idempotency!
      await leaveEffect(protect === 'transaction' ? context.tx : shop.observer, context.key)
    }
    app.post('/things', { preHandler: idempotent({ protect }) }, async (request, reply) => {
      await work(request)
      reply.code(201)
      if (behind === null) return { ok: true }
      reply.send({ ok: true })
      return behind()
    })
    const client = await clientOf(app)
    const key = randomUUID()
    const send = async () => {
      const { status, text } = await client.send({ key, body: {} })
      return [status, JSON.parse(text)]
    }
    const stateOf = async () => [
      (await once.explain({ ...explained, key })).state,
      await shop.countEffects(key),
    ]
    return { send, stateOf }
  }

  const throwing = (changes: object) => () => Promise.reject(Object.assign(new Error('hook'), changes))
  const firstTime = (act: () => unknown) => (count: number) => (count === 1 ? act() : undefined)

  test.each([
    ['500', {}, [500, HOOK]],
    ['422', { statusCode: 422 }, [422, { ...HOOK, statusCode: 422, error: 'Unprocessable Entity' }]],
  ])('and throws %s: a transaction is rolled back, and runs again', async (_, changes, told) => {
    const { send, stateOf } = await openHooked('transaction', firstTime(throwing(changes)), null)
    expect(await send()).toEqual(told)
    expect(await stateOf()).toEqual(['retryable', 0])
    expect(await send()).toEqual([201, { ok: true }])
    expect(await stateOf()).toEqual(['completed', 1])
  })

  test('and throws each time: the client hears what the framework makes of it, and nothing is committed', async () => {
    const { send, stateOf } = await openHooked('transaction', throwing({}), null)
    expect(await send()).toEqual([500, HOOK])
    expect(await stateOf()).toEqual(['retryable', 0])
  })

  test('and throws: what a handler did stands, and what the client heard is replayed', async () => {
    const { send, stateOf } = await openHooked('handler', firstTime(throwing({})), null)
    expect(await send()).toEqual([500, HOOK])
    expect(await stateOf()).toEqual(['completed', 1])
    expect(await send()).toEqual([500, HOOK])
    expect(await stateOf()).toEqual(['completed', 1])
  })

  const later = () => new Promise((resolve) => setImmediate(resolve))
  const BEHIND = [
    ['at once', () => Promise.reject(new Error('behind'))],
    ['with a status', () => Promise.reject(Object.assign(new Error('behind'), { statusCode: 422 }))],
    ['later', () => later().then(() => Promise.reject(new Error('behind')))],
  ] as const

  test.each(BEHIND)(
    'while the handler throws behind it %s: a transaction is rolled back',
    async (_, behind) => {
      const { send, stateOf } = await openHooked('transaction', () => {}, behind)
      expect(await send()).toMatchObject([503, { code: 'not_applied' }])
      expect(await stateOf()).toEqual(['retryable', 0])
    },
  )

  test.each(BEHIND)('while the handler throws behind it %s: a handler has replied', async (_, behind) => {
    const { send, stateOf } = await openHooked('handler', () => {}, behind)
    for (const _ of [1, 2]) expect(await send()).toEqual([201, { ok: true }])
    expect(await stateOf()).toEqual(['completed', 1])
  })
})

describe('errors', () => {
  test('what the error handler answers is stored, and replayed byte for byte', async () => {
    const { app } = await openApp()
    let runs = 0
    app.setErrorHandler((error: Error, _, reply) => {
      runs += 1
      return reply.code(502).header('location', '/why').send({ why: error.message, runs })
    })
    app.post('/things', { preHandler: idempotent() }, async () => Promise.reject(new Error('gateway')))
    const client = await clientOf(app)
    const key = randomUUID()
    const first = await client.send({ key })
    const again = await client.send({ key })
    expect(first.json()).toEqual({ why: 'gateway', runs: 1 })
    expect([again.status, again.text, again.headers.location]).toEqual([502, first.text, '/why'])
    expect(again.headers['idempotent-replayed']).toBe('true')
  })

  test('a throw rolls a transaction back, whatever status its error is given', async () => {
    const { app, once } = await openApp({ protect: 'transaction' })
    const note = randomUUID()
    let runs = 0
    app.post('/things', { preHandler: idempotent() }, async (request) => {
      await leaveEffect(request.idempotency!.tx, note)
      runs += 1
      if (runs === 1) throw Object.assign(new Error('declined'), { statusCode: 402 })
      return { runs }
    })
    const client = await clientOf(app)
    const key = randomUUID()
    expect((await client.send({ key })).status).toBe(402)
    expect(await shop.countEffects(note)).toBe(0)
    expect((await once.explain({ ...explained, key })).state).toBe('retryable')
    expect((await client.send({ key })).json()).toEqual({ runs: 2 })
    expect(await shop.countEffects(note)).toBe(1)
  })

  test('a reply that is not an error is a result: 402 is stored with its effects', async () => {
    const { app } = await openApp({ protect: 'transaction' })
    const note = randomUUID()
    app.post('/things', { preHandler: idempotent() }, async (request, reply) => {
      await leaveEffect(request.idempotency!.tx, note)
      return reply.code(402).send({ declined: true })
    })
    const client = await clientOf(app)
    const key = randomUUID()
    await client.send({ key })
    expect((await client.send({ key })).headers['idempotent-replayed']).toBe('true')
    expect(await shop.countEffects(note)).toBe(1)
  })

  test('notExecuted() lets the request run again', async () => {
    const { app } = await openApp()
    let runs = 0
    app.post('/things', { preHandler: idempotent() }, async () => {
      runs += 1
      if (runs === 1) throw notExecuted(new Error('out of stock'))
      return { runs }
    })
    const client = await clientOf(app)
    const key = randomUUID()
    const first = await client.send({ key })
    expect([first.status, codeOf(first.text)]).toEqual([503, 'not_executed'])
    expect((await client.send({ key })).json()).toEqual({ runs: 2 })
  })
})

describe('bodies', () => {
  test('bytes that came in pieces, and were unzipped on their way, are compared as the parser saw them', async () => {
    const { app } = await openApp()
    app.addHook('preParsing', async (request, _, payload) =>
      request.headers['content-encoding'] === 'gzip'
        ? Object.assign(payload.pipe(createGunzip()), {
            receivedEncodedLength: Number(request.headers['content-length']),
          })
        : payload,
    )
    app.post('/things', { preHandler: idempotent() }, async (request) => request.body)
    const client = await clientOf(app)
    const key = randomUUID()
    const zipped = { body: gzipSync('{"amount":1}'), headers: { 'content-encoding': 'gzip' } }
    expect((await client.send({ key, ...zipped })).json()).toEqual({ amount: 1 })
    expect((await client.send({ key, ...zipped })).headers['idempotent-replayed']).toBe('true')
    expect((await client.send({ key, body: '{"amount":2}' })).status).toBe(422)
    const pieces = client.open({ key, headers: { 'transfer-encoding': 'chunked' } })
    pieces.removeHeader('content-length')
    const answered = new Promise<{ headers: object }>((resolve) => pieces.once('response', resolve))
    pieces.write('{"amo')
    setImmediate(() => pieces.end('unt":1}'))
    expect((await answered).headers).toMatchObject({ 'idempotent-replayed': 'true' })
  })

  test('a body that its parser leaves to the handler is compared, and still there', async () => {
    const { app } = await openApp()
    app.addContentTypeParser('application/octet-stream', (_request, _payload, done) => done(null))
    app.post('/things', { preHandler: idempotent() }, async (request) => {
      const chunks = await request.raw.toArray()
      return Buffer.concat(chunks).toString()
    })
    const client = await clientOf(app)
    const key = randomUUID()
    const headers = { 'content-type': 'application/octet-stream' }
    expect((await client.send({ key, headers, body: 'left' })).text).toBe('left')
    expect((await client.send({ key, headers, body: 'left' })).headers['idempotent-replayed']).toBe('true')
    expect((await client.send({ key, headers, body: 'other' })).status).toBe(422)
  })
})

describe('replies', () => {
  test.each<[string, (reply: import('fastify').FastifyReply) => unknown]>([
    ['a web stream', (reply) => reply.send(new Blob(['streamed']).stream())],
    ['a Response', () => new Response('streamed', { status: 201, headers: { location: '/1' } })],
    [
      'a pipeline into the raw response',
      async (reply) => {
        reply.hijack()
        await pipeline(Readable.from(['strea', 'med']), reply.raw)
      },
    ],
  ])('%s is replayed byte for byte', async (_, answer) => {
    const { app } = await openApp()
    app.post('/things', { preHandler: idempotent() }, (_request, reply) => answer(reply))
    const client = await clientOf(app)
    const key = randomUUID()
    const first = await client.send({ key })
    const again = await client.send({ key })
    expect([first.text, again.text, again.status]).toEqual(['streamed', 'streamed', first.status])
    expect(again.headers.location).toBe(first.headers.location)
    expect(again.headers['idempotent-replayed']).toBe('true')
  })

  test('a stream that fails on its way is a failure: told, stored, and not run again', async () => {
    const { app } = await openApp()
    let runs = 0
    app.post('/things', { preHandler: idempotent() }, async (_, reply) => {
      runs += 1
      return reply.send(
        Readable.from(
          (async function* () {
            yield 'half'
            throw new Error('the disk is gone')
          })(),
        ),
      )
    })
    const client = await clientOf(app)
    const key = randomUUID()
    expect((await client.send({ key })).status).toBe(500)
    const again = await client.send({ key })
    expect([again.status, codeOf(again.text), runs]).toEqual([500, 'handler_failed', 1])
  })

  test('retries of what is done that come all at once are all replays', async () => {
    const { app } = await openApp()
    app.post('/things', { preHandler: idempotent() }, async () => ({ done: true }))
    const client = await clientOf(app)
    const key = randomUUID()
    await client.send({ key })
    const answers = await Promise.all(Array.from({ length: 30 }, () => client.send({ key })))
    expect(
      new Set(answers.map(({ status, headers }) => `${status} ${headers['idempotent-replayed']}`)),
    ).toEqual(new Set(['200 true']))
  })

  test('the reply leaves only when it is durable', async () => {
    const { app, once } = await openApp({ protect: 'transaction' })
    const states: string[] = []
    app.addHook('onResponse', async (request) => {
      const { account, operation, key } = request.idempotency!
      states.push((await once.explain({ account, operation, key })).state)
    })
    app.post('/things', { preHandler: idempotent() }, async (request) => {
      await leaveEffect(request.idempotency!.tx, 'durable')
      return {}
    })
    expect((await (await clientOf(app)).send()).status).toBe(200)
    await waitUntil('the response was told', async () => states.length > 0)
    expect(states).toEqual(['completed'])
  })
})

describe('a client that hangs up changes nothing', () => {
  test.each<[string, (reply: import('fastify').FastifyReply) => unknown]>([
    ['with a value', () => 'done'],
    ['with nothing', () => undefined],
    ['with a stream', () => Readable.from(['do', 'ne'])],
    [
      'with a stream into the raw response',
      (reply) => {
        reply.hijack()
        Readable.from(['do', 'ne']).pipe(reply.raw)
      },
    ],
  ])('to a handler that answers %s', async (_, answer) => {
    const { app, once } = await openApp()
    const gate = makeGate()
    app.post('/things', { preHandler: idempotent() }, async (_request, reply) => {
      await gate.pass()
      return answer(reply)
    })
    const client = await clientOf(app)
    const key = randomUUID()
    const request = client.open({ key })
    request.once('error', () => {})
    request.end('{}')
    await gate.reached
    const connections = () =>
      new Promise<number>((resolve) => app.server.getConnections((_e, count) => resolve(count)))
    request.destroy()
    await waitUntil('the client is gone', async () => (await connections()) === 0)
    gate.open()
    await waitUntil(
      'the record is complete',
      async () => (await once.explain({ ...explained, key })).state === 'completed',
    )
    const again = await client.send({ key })
    expect(again.headers['idempotent-replayed']).toBe('true')
    expect(again.text).toBe(_ === 'with nothing' ? '' : 'done')
  })
})

async function noop(): Promise<void> {}

test('paths that are rewritten to one route are told apart', async () => {
  const once = shop.open()
  const app = fastify({ rewriteUrl: () => '/pay', forceCloseConnections: true })
  cleanUpLater(() => app.close())
  await app.register(idempotency, { once, account })
  app.post('/pay', { preHandler: idempotent() }, async () => ({ paid: true }))
  const client = await clientOf(app)
  const key = randomUUID()
  expect((await client.send({ key, path: '/t/a/pay' })).status).toBe(200)
  const other = await client.send({ key, path: '/t/b/pay' })
  expect([other.status, codeOf(other.text)]).toEqual([422, 'key_reused'])
})
