import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import type { ConflictTold, KeySource, ReplayTold, RoutePolicy } from '../../src/http/index.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { makeGate, openShop, type Shop } from './shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

type Policy = Omit<RoutePolicy, 'operation' | 'input'>

/** A route that counts its runs, and how to ask it. */
function serve(policy: Policy, wait: () => Promise<void> = async () => {}) {
  let runs = 0
  const options = { account: 'acct_1', operation: 'orders.create', ...policy }
  const route = idempotent(shop.open(), options, async () => {
    runs += 1
    await wait()
    return Response.json({ runs }, { status: 201 })
  })
  const send = (key: string, body: unknown = {}) => {
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    return route(
      new Request('http://localhost/orders', { method: 'POST', headers, body: JSON.stringify(body) }),
    )
  }
  return { send, runs: () => runs }
}

describe('onReplay and onConflict', () => {
  test('are told of the key, and only when there is something to tell', async () => {
    const told: (ReplayTold | ConflictTold)[] = []
    const gate = makeGate()
    const hooks = {
      onReplay: (one: ReplayTold) => told.push(one),
      onConflict: (one: ConflictTold) => told.push(one),
    }
    const { send } = serve(hooks, () => gate.pass())
    const key = randomUUID()
    const first = send(key)
    await gate.reached
    const id = { account: 'acct_1', operation: 'orders.create', key }
    expect((await send(key)).status).toBe(409)
    expect(told.at(-1)).toEqual({ ...id, status: 409, code: 'in_progress' })
    told.length = 0
    gate.open()
    await first
    expect(told).toEqual([])
    await send(key)
    await send(key, { other: true })
    expect(told).toEqual([
      { ...id, status: 201 },
      { ...id, status: 422, code: 'key_reused' },
    ])
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('the hook is broken')
      },
    ],
    ['rejects', () => Promise.reject(new Error('the hook is broken'))],
    ['never ends', () => new Promise(() => {})],
  ])('a hook that %s harms no answer, and is told once', async (how, hook) => {
    const warnings = hearWarnings('OnlyonceHookWarning')
    const { send, runs } = serve({ onReplay: hook, onConflict: hook })
    const key = randomUUID()
    await send(key)
    for (let i = 0; i < 3; i += 1) {
      expect((await send(key)).headers.get('idempotent-replayed')).toBe('true')
      expect((await send(key, { other: i })).status).toBe(422)
    }
    await new Promise((resolve) => setImmediate(resolve))
    expect(runs()).toBe(1)
    const expected =
      how === 'never ends' ? [] : [expect.stringContaining('orders.create: onReplay or onConflict failed: ')]
    expect(warnings).toEqual(expected)
  })

  test('are functions', () => {
    expect(() => serve({ onReplay: 'log' as never })).toThrow('onReplay is a function.')
  })
})

describe('a function that tells the key', () => {
  const token = ({ body }: KeySource) => (body as { token?: string }).token

  test('that throws is for the framework, and claims nothing', async () => {
    const own = new Error('there is no such message')
    const { send, runs } = serve({
      key: () => {
        throw own
      },
    })
    await expect(send(randomUUID())).rejects.toBe(own)
    expect(runs()).toBe(0)
  })

  test('is not asked about a body that is malformed, and gives no promise', async () => {
    hearWarnings('OnlyonceMistakeWarning')
    const route = idempotent(shop.open(), { account: 'a', operation: 'o', key: token }, () => new Response())
    const headers = { 'content-type': 'application/json' }
    const broken = new Request('http://localhost/', { method: 'POST', headers, body: '{"token":' })
    expect((await route(broken)).status).toBe(400)
    const { send, runs } = serve({ key: (async () => randomUUID()) as never })
    expect([(await send(randomUUID())).status, runs()]).toEqual([500, 0])
  })

  test('has no header beside it', () => {
    expect(() => serve({ key: token, header: 'X-Key' })).toThrow(
      'header is not read where key is a function.',
    )
  })

  test('is known to a layer inside that meets the same request under a new object', async () => {
    hearWarnings('OnlyonceMistakeWarning')
    const once = shop.open()
    const layer = { account: 'acct_1', operation: 'twice.create', key: token }
    let runs = 0
    const inner = new Hono().post('/things', honoLayer(once, { ...layer, leaseMs: 5_000 }), (c) => {
      runs += 1
      return c.json({}, 201)
    })
    const outer = idempotent(once, layer, async (request) => {
      const answer = await inner.fetch(new Request(request))
      return Response.json(await answer.json(), { status: answer.status })
    })
    const body = JSON.stringify({ token: randomUUID() })
    const headers = { 'content-type': 'application/json' }
    const answer = await outer(new Request('http://localhost/things', { method: 'POST', headers, body }))
    // By its own code: met as another request in progress it would be 409.
    expect([answer.status, runs]).toEqual([500, 0])
  })
})
