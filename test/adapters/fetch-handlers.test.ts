import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FetchOptions, idempotent } from '../../src/http/adapters/fetch/index.ts'
import type { IdempotencyContext } from '../../src/http/index.ts'
import { notExecuted, type Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { catchError, leaveEffect, makeGate, openShop, type Shop } from '../contract/shop.ts'

interface Context {
  readonly idempotency: IdempotencyContext<PostgresTx> | null
  // biome-ignore lint/suspicious/noExplicitAny: what parameters there are is said where they are given.
  readonly params?: any
}
type Options = Partial<FetchOptions<Request, object>>

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
})

const protect = (
  options: Options,
  handler: (request: Request, context: Context) => Response | Promise<Response>,
) =>
  idempotent(
    once,
    { account: () => 'acct_1', operation: 'orders.create', ...options } as never,
    handler as never,
  )

function makeRequest(key: string, init: RequestInit = {}, path = '/orders'): Request {
  const headers = { 'Idempotency-Key': key, ...init.headers }
  return new Request(`http://localhost${path}`, { method: 'POST', ...init, headers })
}

const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code
const isReplay = ({ headers }: Response) => headers.get('idempotent-replayed') === 'true'

describe('a request', () => {
  test.each<[string, (request: Request) => Promise<unknown>, unknown]>([
    ['json', (request) => request.json(), { amount: 5 }],
    ['text', (request) => request.text(), '{"amount":5}'],
    ['arrayBuffer', async (request) => (await request.arrayBuffer()).byteLength, 12],
    ['blob', async (request) => (await request.blob()).size, 12],
    ['clone', (request) => request.clone().json(), { amount: 5 }],
  ])('reaches the handler unread: %s', async (_, read, expected) => {
    const given = makeRequest(randomUUID(), { body: '{"amount":5}' })
    const POST = protect({}, async (request) => {
      // The very same: a framework may have added something to it.
      expect(request).toBe(given)
      return Response.json(await read(request))
    })
    expect(await (await POST(given)).json()).toEqual(expected)
  })

  test('may be a form with files', async () => {
    const body = new FormData()
    body.set('receipt', new Blob(['five euros']), 'receipt.txt')
    const POST = protect({}, async (request) => {
      const receipt = (await request.formData()).get('receipt') as File
      return new Response(await receipt.text())
    })
    expect(await (await POST(makeRequest(randomUUID(), { body }))).text()).toBe('five euros')
  })

  test.each<[string, (request: Request) => unknown]>([
    ['read', (request) => request.text()],
    ['being read', (request) => request.body?.getReader()],
  ])('whose body is %s already is refused, and nothing runs', async (_, read) => {
    const request = makeRequest(randomUUID(), { body: '{"amount":5}' })
    await read(request)
    const POST = protect({ fingerprint: { body: 'parsed' } }, () => {
      throw new Error('It ran.')
    })
    expect(await codeOf(await POST(request))).toBe('raw_body_missing')
  })

  test('with more of a body than is read is refused, and the rest is not waited for', async () => {
    let cancelled = false
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(300_000)),
      cancel() {
        cancelled = true
      },
    })
    const init = { body, duplex: 'half' } as RequestInit
    const response = await protect({}, () => new Response())(makeRequest(randomUUID(), init))
    expect([response.status, await codeOf(response), cancelled]).toEqual([413, 'body_too_large', true])
  })

  test('that is not protected is let through, without a context', async () => {
    const letThrough = protect({}, () => new Response('let through'))
    const asking = protect({}, (_, { idempotency }) => Response.json(idempotency!.key))
    for (const method of ['GET', 'PUT', 'HEAD']) {
      const response = await letThrough(new Request('http://localhost/', { method }))
      expect([response.status, await response.text()]).toEqual([200, 'let through'])
      const asked = asking(new Request('http://localhost/', { method }))
      expect(await catchError(asked)).toMatchObject({ code: 'setup_invalid' })
    }
  })

  test('given up by its client is finished all the same', async () => {
    const key = randomUUID()
    const gate = makeGate()
    const client = new AbortController()
    const POST = protect({}, async (request) => {
      await gate.pass()
      return new Response(await request.text())
    })
    const running = POST(makeRequest(key, { body: 'the work', signal: client.signal }))
    await gate.reached
    client.abort()
    gate.open()
    await running
    const again = await POST(makeRequest(key, { body: 'the work' }))
    expect([await again.text(), isReplay(again)]).toEqual(['the work', true])
  })
})

describe('the parameters of the path', () => {
  const send = (key: string, path: string, context?: { params: unknown }) =>
    protect({ operation: 'payments.capture' }, async (_, { params }) =>
      Response.json((await params) ?? null),
    )(makeRequest(key, {}, path), context)

  test.each<[string, (id: string) => unknown]>([
    ['a promise, as Next.js gives them', async (id) => ({ id })],
    ['an object', (id) => ({ id })],
    ['a list of parts', async (id) => ({ slug: ['payments', id] })],
  ])('tell requests apart: %s', async (_, params) => {
    const key = randomUUID()
    const first = await send(key, '/', { params: params('a') })
    expect(await first.json()).toEqual(await params('a'))
    expect((await send(key, '/', { params: params('b') })).status).toBe(422)
    expect(isReplay(await send(key, '/', { params: params('a') }))).toBe(true)
  })

  test.each<[string, { params: unknown } | undefined]>([
    ['no context', undefined],
    ['a context without any', { params: Promise.resolve({}) }],
  ])('are the path itself where there are none: %s', async (_, context) => {
    const key = randomUUID()
    expect((await send(key, '/payments/a/capture', context)).status).toBe(200)
    expect((await send(key, '/payments/b/capture', context)).status).toBe(422)
    expect(isReplay(await send(key, '/payments/a/capture', context))).toBe(true)
  })
})

describe('a response', () => {
  const twice = async (make: () => Response) => {
    const key = randomUUID()
    const POST = protect({}, make)
    return { first: await POST(makeRequest(key)), again: await POST(makeRequest(key)) }
  }

  test.each([204, 205, 304])('without a body comes back without one: %i', async (status) => {
    const { first, again } = await twice(() => new Response(null, { status, headers: { etag: '"7"' } }))
    expect([first.status, first.body]).toEqual([status, null])
    expect([again.status, again.body, again.headers.get('etag')]).toEqual([status, null, '"7"'])
    expect(isReplay(again)).toBe(true)
  })

  test('keeps its status text and several cookies, and is replayed without them', async () => {
    const { first, again } = await twice(() => {
      const headers = new Headers([
        ['set-cookie', 'a=1'],
        ['set-cookie', 'b=2'],
        ['location', '/orders/7'],
      ])
      return new Response('made', { status: 201, statusText: 'Made', headers })
    })
    expect([first.statusText, first.headers.getSetCookie()]).toEqual(['Made', ['a=1', 'b=2']])
    expect(again.headers.getSetCookie()).toEqual([])
    expect([again.headers.get('location'), await again.text()]).toEqual(['/orders/7', 'made'])
  })

  test('may be a redirect, whose headers nobody can change', async () => {
    const { first, again } = await twice(() => Response.redirect('http://localhost/orders/7', 303))
    for (const { status, headers } of [first, again]) {
      expect([status, headers.get('location')]).toEqual([303, 'http://localhost/orders/7'])
    }
  })

  test('that is none, or breaks off, is a failure that is thrown on and stored', async () => {
    const broken = () =>
      new ReadableStream({
        pull(controller) {
          controller.error(new Error('the disk is gone'))
        },
      })
    const failing = [
      () => Response.error(),
      () => new Response(broken()),
      () => undefined as unknown as Response,
    ]
    for (const make of failing) {
      const key = randomUUID()
      const POST = protect({}, make)
      await expect(POST(makeRequest(key))).rejects.toBeInstanceOf(Error)
      expect(await codeOf(await POST(makeRequest(key)))).toBe('handler_failed')
    }
  })

  test('of a transaction leaves when its effects are there to be seen', async () => {
    const note = randomUUID()
    const POST = protect({ protect: 'transaction' }, async (_, { idempotency }) => {
      await leaveEffect(idempotency!.tx, note)
      expect(await shop.countEffects(note)).toBe(0)
      return new Response('moved')
    })
    expect(await (await POST(makeRequest(randomUUID()))).text()).toBe('moved')
    expect(await shop.countEffects(note)).toBe(1)
  })
})

describe('a handler that throws', () => {
  test('is heard by whoever called it, and never runs again', async () => {
    const key = randomUUID()
    const error = new Error('the gateway is gone')
    const POST = protect({}, () => Promise.reject(error))
    await expect(POST(makeRequest(key))).rejects.toBe(error)
    expect(await codeOf(await POST(makeRequest(key)))).toBe('handler_failed')
  })

  test('notExecuted() runs again', async () => {
    const key = randomUUID()
    let runs = 0
    const POST = protect({}, () => {
      runs += 1
      if (runs === 1) throw notExecuted('the warehouse is closed')
      return new Response(`run ${runs}`)
    })
    expect(await codeOf(await POST(makeRequest(key)))).toBe('not_executed')
    expect(await (await POST(makeRequest(key))).text()).toBe('run 2')
    expect(isReplay(await POST(makeRequest(key)))).toBe(true)
  })

  test('in a transaction is rolled back, and runs again', async () => {
    const key = randomUUID()
    const note = randomUUID()
    let runs = 0
    const POST = protect({ protect: 'transaction' }, async (_, { idempotency }) => {
      runs += 1
      await leaveEffect(idempotency!.tx, note)
      if (runs === 1) throw new Error('no')
      return new Response('moved')
    })
    await expect(POST(makeRequest(key))).rejects.toThrow('no')
    expect(await shop.countEffects(note)).toBe(0)
    expect(await (await POST(makeRequest(key))).text()).toBe('moved')
    expect(await shop.countEffects(note)).toBe(1)
  })
})
