import { expect } from 'vitest'
import type { RoutePolicy } from '../../../src/http/index.ts'
import { type Bench, topic } from '../case.ts'
import { expectReplay } from '../expectations.ts'

const BUSINESS = [200, 201, 202, 302, 402, 410, 412, 422]
const NOT_NOW = [400, 401, 403, 404, 408, 409, 425, 429]
const FAILED = [500, 501, 502, 503, 504]

export const final = topic('Which replies are final', (one) => {
  /** Sends each status twice; tells which of them ran twice, and that each left as many effects as it should. */
  const runAgain = async (
    bench: Bench,
    policy: RoutePolicy,
    statuses: readonly number[],
  ): Promise<number[]> => {
    const transaction = policy.protect === 'transaction'
    const served = await bench.serve({
      policy,
      async handle({ query, once }, runs) {
        if (transaction) {
          await once!.tx.query('INSERT INTO effects (note) VALUES ($1)', [once!.key])
        }
        return { do: 'json', status: Number(query.status), value: { runs } }
      },
    })
    const againAt: number[] = []
    for (const status of statuses) {
      const key = crypto.randomUUID()
      const { first, again } = await served.twice({ key, path: `/things?status=${status}` })
      expect([first.status, again.status]).toEqual([status, status])
      const ranAgain = again.headers['idempotent-replayed'] === undefined
      if (ranAgain) againAt.push(status)
      else expectReplay(first, again)
      expect(again.json().runs - first.json().runs).toBe(ranAgain ? 1 : 0)
      if (transaction) expect(await bench.shop.countEffects(key)).toBe(ranAgain ? 0 : 1)
    }
    return againAt
  }

  one('handler: every reply is stored, failures included', async (bench) => {
    expect(await runAgain(bench, {}, [...BUSINESS, ...NOT_NOW, ...FAILED])).toEqual([])
  })

  one('transaction: business outcomes are committed and stored', async (bench) => {
    expect(await runAgain(bench, { protect: 'transaction' }, BUSINESS)).toEqual([])
  })

  one('transaction: "not now" and failures are rolled back and run again', async (bench) => {
    const statuses = [...NOT_NOW, ...FAILED]
    expect(await runAgain(bench, { protect: 'transaction' }, statuses)).toEqual(statuses)
  })

  one('a route overrides single statuses and whole classes', async (bench) => {
    const policy: RoutePolicy = { final: { '5xx': 'retry', 503: 'store', 404: 'retry' } }
    expect(await runAgain(bench, policy, [200, 404, 409, 500, 503])).toEqual([404, 500])
    const transaction: RoutePolicy = { protect: 'transaction', final: { 409: 'store', 422: 'retry' } }
    expect(await runAgain(bench, transaction, [409, 422, 404])).toEqual([422, 404])
  })

  one('stripe_v1 stores whatever came of a request', async (bench) => {
    expect(await runAgain(bench, { profile: 'stripe_v1' }, [200, 402, 409, 500])).toEqual([])
  })

  one('stripe_v2 runs failures again', async (bench) => {
    expect(await runAgain(bench, { profile: 'stripe_v2' }, [200, 402, 409, 500])).toEqual([500])
  })

  one(
    'stripe profiles: the key is optional, belongs to the account, and errors have their form',
    async (bench) => {
      for (const profile of ['stripe_v1', 'stripe_v2'] as const) {
        const policy = { profile }
        const served = await bench.serve([
          { path: '/charges', policy },
          { path: '/refunds', policy },
        ])
        expect((await served.send({ path: '/charges', key: null })).status).toBe(201)
        const key = crypto.randomUUID()
        await served.send({ path: '/charges', key })
        const reused = await served.send({ path: '/refunds', key })
        expect(reused.status).toBe(400)
        expect(reused.headers['stripe-should-retry']).toBe('false')
        expect(reused.json().error).toMatchObject({ type: 'idempotency_error', code: 'key_reused' })
        const malformed = await served.send({ path: '/charges', key: 'a, b' })
        expect(malformed.json().error).toMatchObject({ type: 'invalid_request_error', code: 'key_list' })
        expect(served.runs).toBe(2)
      }
    },
  )
})
