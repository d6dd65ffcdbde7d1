import { expect } from 'vitest'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import type { RouteInput } from '../under-test.ts'

const tell = ({ params, query, body }: RouteInput, runs: number) =>
  ({ do: 'json', status: 200, value: { params, query, body, runs } }) as const

export const scope = topic('What counts as the same request', (one) => {
  one('one key of two accounts is two keys', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const mine = await served.send({ key })
    const other = await served.send({ key, account: 'acct_2' })
    expect(other.json()).not.toEqual(mine.json())
    expect(other.headers['idempotent-replayed']).toBeUndefined()
    expectReplay(mine, await served.send({ key }))
    expectReplay(other, await served.send({ key, account: 'acct_2' }))
    expect(served.runs).toBe(2)
  })

  one('one key on two routes is two keys', async (bench) => {
    const served = await bench.serve([{ path: '/orders' }, { path: '/refunds' }])
    const key = crypto.randomUUID()
    const order = await served.send({ key, path: '/orders' })
    const refund = await served.send({ key, path: '/refunds' })
    expect(refund.headers['idempotent-replayed']).toBeUndefined()
    expectReplay(order, await served.send({ key, path: '/orders' }))
    expect(served.runs).toBe(2)
  })

  one('one key on two routes, where it belongs to the account, is reused', async (bench) => {
    const policy = { scope: 'account' } as const
    const served = await bench.serve([
      { path: '/orders', policy },
      { path: '/refunds', policy },
    ])
    const key = crypto.randomUUID()
    await served.send({ key, path: '/orders' })
    expectProblem(await served.send({ key, path: '/refunds' }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one(
    'one key on two resources of one route is reused',
    async (bench) => {
      const served = await bench.serve({ path: '/payments/:id/capture', handle: tell })
      const key = crypto.randomUUID()
      const first = await served.send({ key, path: '/payments/a/capture' })
      expectProblem(await served.send({ key, path: '/payments/b/capture' }), 'key_reused')
      expectReplay(first, await served.send({ key, path: '/payments/a/capture' }))
      expect(served.runs).toBe(1)
    },
    ['route_pattern'],
  )

  one('nor is one resource taken for the other where the operation has a name', async (bench) => {
    const policy = { operation: 'payments.capture' }
    const served = await bench.serve({ path: '/payments/:id/capture', policy, handle: tell })
    const key = crypto.randomUUID()
    await served.send({ key, path: '/payments/a/capture' })
    expectProblem(await served.send({ key, path: '/payments/b/capture' }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one('a sub-router under a prefix is protected', async (bench) => {
    const served = await bench.serve([
      { prefix: '/v1', path: '/orders/:id', handle: tell },
      { prefix: '/v2', path: '/orders/:id', handle: tell },
    ])
    const key = crypto.randomUUID()
    const first = await served.send({ key, path: '/v1/orders/7' })
    expect(first.json().params).toEqual({ id: '7' })
    expectReplay(first, await served.send({ key, path: '/v1/orders/7' }))
    const other = await served.send({ key, path: '/v2/orders/7' })
    expect(other.headers['idempotent-replayed']).toBeUndefined()
  })

  one(
    'one key under two prefixes is two keys',
    async (bench) => {
      const served = await bench.serve([
        { prefix: '/v1', path: '/orders/:id', handle: tell },
        { prefix: '/v2', path: '/orders/:id', handle: tell },
      ])
      const key = crypto.randomUUID()
      await served.send({ key, path: '/v1/orders/7' })
      expect((await served.send({ key, path: '/v2/orders/7' })).status).toBe(200)
      expect(served.runs).toBe(2)
    },
    ['prefix_pattern'],
  )

  one(
    'parameters in the prefix count, whatever the operation is called',
    async (bench) => {
      const policy = { operation: 'orders.create' }
      const served = await bench.serve({ prefix: '/shops/:shop', path: '/orders', policy, handle: tell })
      const key = crypto.randomUUID()
      await served.send({ key, path: '/shops/a/orders' })
      expectProblem(await served.send({ key, path: '/shops/b/orders' }), 'key_reused')
      expect(served.runs).toBe(1)
    },
    ['prefix_params'],
  )

  one('the query counts, and the order of its names does not', async (bench) => {
    const served = await bench.serve({ handle: tell })
    const key = crypto.randomUUID()
    const first = await served.send({ key, path: '/things?a=1&b=2' })
    expectReplay(first, await served.send({ key, path: '/things?b=2&a=1' }))
    expectProblem(await served.send({ key, path: '/things?a=1&b=3' }), 'key_reused')
    expectProblem(await served.send({ key, path: '/things??a=1&b=2' }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one('members may come in another order, nested ones too', async (bench) => {
    const served = await bench.serve({ handle: tell })
    const key = crypto.randomUUID()
    const first = await served.send({ key, body: '{"a":{"x":1,"y":[{"p":1,"q":2}]},"b":2}' })
    expectReplay(first, await served.send({ key, body: '{ "b": 2, "a": {"y":[{"q":2,"p":1}],"x":1} }' }))
    expectProblem(await served.send({ key, body: '{"a":{"x":1,"y":[{"p":2,"q":2}]},"b":2}' }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one('the same body under a new key is a new request', async (bench) => {
    const served = await bench.serve()
    await served.send({ body: { amount: 5 } })
    expect((await served.send({ body: { amount: 5 } })).status).toBe(201)
    expect(served.runs).toBe(2)
  })

  one('an answer of the boundary is never stored in place of the reply', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const first = await served.send({ key })
    for (let i = 0; i < 3; i += 1) expectProblem(await served.send({ key, body: { i } }), 'key_reused')
    expectReplay(first, await served.send({ key }))
  })

  one('GET and HEAD pass untouched, with a key or without', async (bench) => {
    const served = await bench.serve({ method: 'GET', handle: tell })
    for (const key of [null, crypto.randomUUID()]) {
      const { first, again } = await served.twice({ method: 'GET', key, body: null })
      expect(again.json().runs).toBe(first.json().runs + 1)
      expect(again.headers['idempotent-replayed']).toBeUndefined()
    }
    const head = await served.send({ method: 'HEAD', body: null })
    expect([head.status, head.body.length]).toEqual([200, 0])
  })

  one('PATCH is protected, PUT and DELETE by choice', async (bench) => {
    const policy = { methods: ['PUT', 'DELETE'] }
    const served = await bench.serve([
      { method: 'PATCH', path: '/a' },
      { method: 'PUT', path: '/b', policy },
      { method: 'DELETE', path: '/c', policy },
      { method: 'PUT', path: '/free' },
    ])
    for (const [method, path] of [
      ['PATCH', '/a'],
      ['PUT', '/b'],
      ['DELETE', '/c'],
    ] as const) {
      const { first, again } = await served.twice({
        method,
        path,
        ...(method === 'DELETE' && { body: null }),
      })
      expectReplay(first, again)
    }
    expect(served.runs).toBe(3)
    await served.twice({ method: 'PUT', path: '/free', key: null })
    expect(served.runs).toBe(5)
  })
})
