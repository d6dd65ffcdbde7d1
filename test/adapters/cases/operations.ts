import { expect } from 'vitest'
import { invalid, notExecuted, operation, reply } from '../../../src/index.ts'
import { leaveEffect } from '../../contract/shop.ts'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

let names = 0
/** Operations are known by their names, and each case has one of its own. */
const newName = () => `things.operation_${++names}`

export const operations = topic('Durable operations', (one) => {
  one('an operation answers the request, and no handler runs', async (bench) => {
    const create = operation(newName(), async (op, input: { amount: number }) => {
      const charge = await op.call('charged', { call: async ({ key }) => ({ key, ...input }) })
      return op.transaction('settled', async (tx) => {
        await leaveEffect(tx, op.key)
        return reply(201, { charge: charge.key, amount: charge.amount }, { Location: '/things/1' })
      })
    })
    const served = await bench.serve({ policy: { operation: create } })
    const key = crypto.randomUUID()
    const { first, again } = await served.twice({ key, body: '{"amount":5}' })
    expect(first.status).toBe(201)
    expect(first.headers.location).toBe('/things/1')
    expect(first.json().amount).toBe(5)
    expectReplay(first, again)
    expect(served.runs).toBe(0)
    expect(await bench.shop.countEffects(key)).toBe(1)
    expectProblem(await served.send({ key, body: '{"amount":6}' }), 'key_reused')
  })

  one('its input is what the route makes of the request; what that throws claims no key', async (bench) => {
    const seen: unknown[] = []
    const create = operation(newName(), async (_, input: unknown) => {
      seen.push(input)
      return reply(200, { input })
    })
    const served = await bench.serve({
      path: '/things/:id',
      policy: {
        operation: create,
        input: ({ account, body, path, pathParams, query }) => {
          if (query === 'refuse') throw new Error('not like this')
          return { account, body, id: pathParams.id ?? path.split('/').at(-1) }
        },
      },
    })
    const sent = { path: '/things/7', account: 'acct_in', body: '{"amount":5}' }
    const made = await served.send(sent)
    expect(made.json()).toEqual({ input: { account: 'acct_in', body: { amount: 5 }, id: '7' } })
    const key = crypto.randomUUID()
    expect((await served.send({ ...sent, key, path: '/things/7?refuse' })).status).toBe(500)
    const { rows } = await bench.shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])
    expect(rows).toEqual([])
    expect(seen).toHaveLength(1)
  })

  one('a number that JavaScript would round is refused, and claims no key', async (bench) => {
    const seen: unknown[] = []
    const run = async (_: unknown, input: unknown) => {
      seen.push(input)
      return reply(201, { input })
    }
    const exact = ({ bytes }: { bytes: Uint8Array | null }) => Buffer.from(bytes!).toString()
    const asked = ({ body }: { body: unknown }) => body
    for (const [policy, body] of [
      [{ operation: operation(newName(), run) }, '{"amount":9007199254740993}'],
      [{ operation: operation(newName(), run) }, '[1.0000000000000000001]'],
      [{ operation: operation(newName(), run), input: asked }, '{"amount":9007199254740993}'],
    ] as const) {
      const served = await bench.serve({ policy })
      const key = crypto.randomUUID()
      expectProblem(await served.send({ key, body }), 'json_number_inexact')
      const { rows } = await bench.shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])
      expect(rows).toEqual([])
    }
    expect(seen).toEqual([])
    // Those who want such a number read it themselves.
    const served = await bench.serve({ policy: { operation: operation(newName(), run), input: exact } })
    const kept = await served.send({ body: '{"amount":9007199254740993}' })
    expect(kept.json()).toEqual({ input: '{"amount":9007199254740993}' })
    const fits = await bench.serve({ policy: { operation: operation(newName(), run) } })
    expect((await fits.send({ body: '{"amount":9007199254740992,"rate":0.1}' })).status).toBe(201)
  })

  one('what input throws goes to the framework, and says nothing of the key', async (bench) => {
    for (const made of [notExecuted, () => invalid({ status: 422, body: { error: 'mine' } })]) {
      let throws = false
      const input = ({ body }: { readonly body: unknown }) => {
        if (throws) throw made()
        return body
      }
      const create = operation(newName(), async (_, input: unknown) => reply(201, { input }))
      const served = await bench.serve({ policy: { operation: create, input } })
      const sent = { key: crypto.randomUUID(), body: { amount: 5 } }
      const first = await served.send(sent)
      throws = true
      const { headers, text } = await served.send(sent)
      expect(headers['content-type']).not.toBe('application/problem+json')
      expect(text).not.toMatch(/"executed"|mine/)
      throws = false
      expectReplay(first, await served.send(sent))
    }
  })

  one('a call that was not executed is 503, and the retry goes on', async (bench) => {
    let busy = true
    const create = operation(newName(), async (op, _: unknown) => {
      await op.transaction('noted', (tx) => leaveEffect(tx, op.key))
      const charge = await op.call('charged', {
        call: async () => {
          if (busy) throw notExecuted(new Error('429'))
          return 'ch_1'
        },
      })
      return reply(201, { charge })
    })
    const served = await bench.serve({ policy: { operation: create } })
    const key = crypto.randomUUID()
    expectProblem(await served.send({ key }), 'unfinished')
    busy = false
    const { first, again } = await served.twice({ key })
    expect(first.json()).toEqual({ charge: 'ch_1' })
    expectReplay(first, again)
    expect(await bench.shop.countEffects(key)).toBe(1)
  })

  one('an outcome in doubt is 409 with an own type, and never runs again by itself', async (bench) => {
    let calls = 0
    const create = operation(newName(), async (op, _: unknown) => {
      await op.call('charged', {
        idempotent: false,
        call: async () => {
          calls += 1
          throw new Error('socket hang up')
        },
      })
      return reply(201)
    })
    const served = await bench.serve({ policy: { operation: create } })
    const { first, again } = await served.twice({ key: crypto.randomUUID() })
    expectProblem(first, 'outcome_pending', { retryAfter: true })
    expectProblem(again, 'outcome_pending', { retryAfter: true })
    expect(calls).toBe(1)
  })

  one('"not now" runs again, a decline replays', async (bench) => {
    const create = operation(newName(), (op, { status }: { status: number }) =>
      op.transaction('noted', async (tx) => {
        await leaveEffect(tx, op.key)
        return reply(status, { status })
      }),
    )
    const served = await bench.serve({ policy: { operation: create } })
    for (const [status, effects] of [
      [402, 1],
      [429, 0],
      [500, 0],
    ]) {
      const key = crypto.randomUUID()
      const { first, again } = await served.twice({ key, body: JSON.stringify({ status }) })
      expect([first.status, again.status]).toEqual([status, status])
      expect(again.headers['idempotent-replayed']).toBe(effects === 1 ? 'true' : undefined)
      expect(await bench.shop.countEffects(key)).toBe(effects)
    }
  })

  one('what an operation throws is for the framework, and its key goes on', async (bench) => {
    let broken = true
    const create = operation(newName(), (op, _: unknown) =>
      op.transaction('noted', async (tx) => {
        await leaveEffect(tx, op.key)
        if (broken) throw new Error('a bug')
        return reply(201, { ok: true })
      }),
    )
    const served = await bench.serve({ policy: { operation: create } })
    const key = crypto.randomUUID()
    expect((await served.send({ key })).status).toBe(500)
    broken = false
    expect((await served.send({ key })).status).toBe(201)
    expect(await bench.shop.countEffects(key)).toBe(1)
  })
})
