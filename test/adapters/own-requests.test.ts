import { randomUUID } from 'node:crypto'
import { Hono } from 'hono'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent as fetchLayer } from '../../src/http/adapters/fetch/index.ts'
import { idempotent as honoLayer } from '../../src/http/adapters/hono/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { hearWarnings } from '../setup/warnings.ts'

/** A handler that has done its work asks another protected app, or itself, in the same process and with the key that it was given. */
let shop: Shop
beforeAll(async () => {
  shop = await openShop()
  hearWarnings('OnlyonceMistakeWarning')
})

type Serve = (request: Request) => Response | Promise<Response>
type Protect = (once: Onlyonce<PostgresTx>, path: string, policy: Protected, handle: Serve) => Serve
interface Protected extends Omit<RoutePolicy, 'operation' | 'input'> {
  readonly owner: string
  readonly operation: string
}

const PROTECTS: readonly (readonly [string, Protect])[] = [
  [
    'fetch',
    (once, _, { owner, ...policy }, handle) => fetchLayer(once, { ...policy, account: () => owner }, handle),
  ],
  [
    'Hono',
    (once, path, { owner, ...policy }, handle) => {
      const app = new Hono()
      app.post(path, honoLayer(once, { ...policy, account: () => owner }), (c) => handle(c.req.raw))
      return (request) => app.fetch(request)
    },
  ],
]

function post(serve: Serve, path: string, key: string, body: string) {
  const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
  return serve(new Request(`http://localhost${path}`, { method: 'POST', headers, body }))
}

async function told(response: Response) {
  const { code } = (await response.json()) as { code?: string }
  return [response.status, code, response.headers.get('idempotent-replayed') === 'true']
}

const keyOf = (request: Request) => request.headers.get('idempotency-key')!

describe.each(PROTECTS)('%s', (_, protect) => {
  const outer = { owner: 'acct_1', operation: 'charges.create' }

  test.each(['/', '/charges', '/ledger'])('a request for another account to %s', async (path) => {
    const once = shop.open()
    let [charges, entries] = [0, 0]
    const ledger = protect(once, path, { owner: 'books', operation: 'ledger.enter' }, () => {
      entries += 1
      return Response.json({}, { status: 201 })
    })
    const serve = protect(once, '/v1/charges', outer, async (request) => {
      charges += 1
      const { status } = await post(ledger, path, keyOf(request), '{"x":1}')
      return Response.json({ booked: status }, { status: 201 })
    })
    const key = randomUUID()
    const first = await post(serve, '/v1/charges', key, '{"x":1}')
    expect([first.status, await first.json()]).toEqual([201, { booked: 201 }])
    expect(await told(await post(serve, '/v1/charges', key, '{"x":1}'))).toEqual([201, undefined, true])
    expect([charges, entries]).toEqual([1, 1])
  })

  test.each(['handler', 'transaction'] as const)(
    '%s: a handler whose request was refused goes on after it, and its reply is kept',
    async (protection) => {
      const once = shop.open()
      let charges = 0
      const inner = protect(once, '/charges', { ...outer, operation: 'charges.other' }, () =>
        Response.json({}),
      )
      const serve = protect(once, '/v1/charges', { ...outer, protect: protection }, async (request) => {
        charges += 1
        const refused = await told(await post(inner, '/charges', keyOf(request), '{}'))
        return Response.json({ code: `${refused[1]}, and charged` }, { status: 201 })
      })
      const key = randomUUID()
      const code = 'layer_twice, and charged'
      expect(await told(await post(serve, '/v1/charges', key, '{}'))).toEqual([201, code, false])
      expect(await told(await post(serve, '/v1/charges', key, '{}'))).toEqual([201, code, true])
      expect(charges).toBe(1)
    },
  )

  test.each([
    ['another body', '{"a":2}'],
    ['the same body', '{"a":1}'],
  ])('a handler asks itself with %s: it runs once', async (__, body) => {
    const once = shop.open()
    let runs = 0
    const serve: Serve = protect(once, '/charges', outer, async (request) => {
      runs += 1
      if (runs > 3) return Response.json({}, { status: 201 })
      const [, code] = await told(await post(serve, '/charges', keyOf(request), body))
      return Response.json({ code }, { status: 201 })
    })
    const key = randomUUID()
    expect(await told(await post(serve, '/charges', key, '{"a":1}'))).toEqual([201, 'layer_twice', false])
    expect(await told(await post(serve, '/charges', key, '{"a":1}'))).toEqual([201, 'layer_twice', true])
    expect(runs).toBe(1)
  })

  test('a layer with equal options lets no request with another body through', async () => {
    const once = shop.open()
    let runs = 0
    const inner = protect(once, '/charges', outer, () => Response.json({ runs: ++runs }))
    const serve = protect(once, '/charges', outer, async (request) => {
      const [, code] = await told(await post(inner, '/charges', keyOf(request), '{"a":2}'))
      return Response.json({ code }, { status: 201 })
    })
    const answer = await post(serve, '/charges', randomUUID(), '{"a":1}')
    expect([await told(answer), runs]).toEqual([[201, 'layer_twice', false], 0])
  })

  test('a handler that asks itself and passes the answer on is not run again', async () => {
    const once = shop.open()
    let runs = 0
    const serve: Serve = protect(once, '/charges', outer, (request) => {
      runs += 1
      return runs > 3 ? Response.json({}) : post(serve, '/charges', keyOf(request), '{"a":2}')
    })
    const key = randomUUID()
    expect(await told(await post(serve, '/charges', key, '{"a":1}'))).toEqual([500, 'handler_failed', false])
    expect(await told(await post(serve, '/charges', key, '{"a":1}'))).toEqual([500, 'handler_failed', true])
    expect(runs).toBe(1)
  })

  test.each<[string, (request: Request) => Request]>([
    ['itself', (request) => request],
    ['as a copy', (request) => request.clone() as Request],
    ['made anew', (request) => new Request(request)],
  ])(
    'a handler that charges, hands its request (%s) to another layer and passes the answer on',
    async (__, hand) => {
      const once = shop.open()
      let charges = 0
      const inner = protect(once, '/charges', { ...outer, operation: 'charges.other' }, () =>
        Response.json({}),
      )
      const serve = protect(once, '/charges', outer, async (request) => {
        charges += 1
        return await inner(hand(request))
      })
      const key = randomUUID()
      expect(await told(await post(serve, '/charges', key, ''))).toEqual([500, 'handler_failed', false])
      expect(await told(await post(serve, '/charges', key, ''))).toEqual([500, 'handler_failed', true])
      expect(charges).toBe(1)
    },
  )
})
