import { beforeAll, describe, expect, test } from 'vitest'
import { OnlyonceError } from '../../src/index.ts'
import type { CutAtCommit } from '../../src/testing/index.ts'
import {
  leaveEffect,
  makeCall,
  openProxy,
  openShop,
  PLACES,
  POOLERS,
  type Shop,
  settleWithin,
} from './shop.ts'

const RUNS = 8
const SOON_MS = 40_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

type Told = { outcome: string; value?: unknown } | OnlyonceError

/** What a caller is told; anything but a result or an error of ours ends the test. */
async function listen(promise: Promise<{ outcome: string; value?: unknown }>): Promise<Told> {
  try {
    return await settleWithin(SOON_MS, promise)
  } catch (error) {
    if (error instanceof OnlyonceError) return error
    throw error
  }
}

const CUTS: readonly Omit<CutAtCommit, 'kind'>[] = [
  { when: 'before' },
  { when: 'before', from: 'batch' },
  { when: 'within' },
  { when: 'within', from: 'batch' },
  { when: 'after', serverCloses: 'at_once' },
  { when: 'after', serverCloses: 'after_answer' },
]

const WAYS = POOLERS.flatMap((pooler) => PLACES.map((place) => ({ pooler, place })))

describe.each(WAYS)('a connection that is cut at COMMIT $place, with pooler $pooler', ({ pooler, place }) => {
  test.each(CUTS)(
    'once, $when ($from $server_closes): it takes effect once, and that is told',
    async (cut) => {
      const { proxy, pool } = await openProxy(shop, { place, seed: 7 })
      const once = shop.open({ pool, store: { pooler } })
      await once.start()
      for (let run = 0; run < RUNS; run++) {
        const call = makeCall()
        const already = sum(proxy.stats.commitsCut)
        proxy.setFault({ kind: 'cut_at_commit', times: 1, ...cut })
        const told = await listen(
          once.transaction(call, async (tx) => {
            await leaveEffect(tx, call.key)
            return run
          }),
        )
        expect(sum(proxy.stats.commitsCut)).toBe(already + 1)
        proxy.setFault(null)
        // Only this one connection broke, so there was every chance to find out.
        expect(told).toMatchObject({ value: run })
        expect(await shop.countEffects(call.key)).toBe(1)
        expect(await once.transaction(call, async () => 'x')).toEqual({ outcome: 'replayed', value: run })
        expect(await shop.countEffects(call.key)).toBe(1)
      }
    },
  )

  test.each(['read committed', 'serializable'] as const)(
    'again and again, at %s: what is told is what is there',
    async (isolation) => {
      const { proxy, pool } = await openProxy(shop, { place, seed: 11 })
      const once = shop.open({ pool, store: { pooler } })
      await once.start()
      proxy.setFault({ kind: 'cut_at_commit', when: 'random', rate: 0.6 })
      const calls = Array.from({ length: 40 }, () => makeCall())
      const told = await Promise.all(
        calls.map((call) =>
          listen(
            once.transaction({ ...call, isolation }, async (tx) => {
              await leaveEffect(tx, call.key)
              return call.key
            }),
          ),
        ),
      )
      proxy.setFault(null)
      expect(sum(proxy.stats.commitsCut)).toBeGreaterThan(10)
      const direct = shop.open({ store: { pooler } })
      for (const [index, call] of calls.entries()) {
        const heard = told[index]!
        const effects = await shop.countEffects(call.key)
        if (!(heard instanceof OnlyonceError)) expect([heard.outcome, effects]).toEqual([heard.outcome, 1])
        // Only this code leaves it open; all the others say that nothing was executed.
        else if (heard.code !== 'outcome_unknown') expect([heard.code, effects]).toEqual([heard.code, 0])
        const last = await direct.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          return call.key
        })
        expect(last).toEqual({ outcome: effects === 1 ? 'replayed' : 'executed', value: call.key })
        expect(await shop.countEffects(call.key)).toBe(1)
      }
    },
  )

  test('always before COMMIT: an error, no effect, and the retry runs', async () => {
    const { proxy, pool } = await openProxy(shop, { place, seed: 13 })
    const once = shop.open({ pool, store: { pooler }, deadlineMs: 5_000 })
    await once.start()
    const call = makeCall()
    proxy.setFault({ kind: 'cut_at_commit', when: 'before' })
    const told = await listen(once.transaction(call, (tx) => leaveEffect(tx, call.key)))
    expect(told).toBeInstanceOf(OnlyonceError)
    expect(told).toMatchObject({ retryable: true })
    expect(await shop.countEffects(call.key)).toBe(0)
    proxy.setFault(null)
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('after COMMIT, and the database is away from then on: outcome_unknown, and the retry tells', async () => {
    const { proxy, pool, heal } = await openProxy(shop, { place, seed: 17 })
    const once = shop.open({
      pool,
      store: { pooler, settleMaxMs: 500, statementMaxMs: 1_000 },
      deadlineMs: 3_000,
    })
    await once.start()
    const call = makeCall()
    proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'after_answer', times: 1 })
    const cut = proxy.once('commit_cut').then(() => proxy.setFault({ kind: 'refuse' }))
    const told = await listen(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        return 'done'
      }),
    )
    await cut
    expect(told).toMatchObject({ code: 'outcome_unknown', status: 503, retryable: true })
    await heal()
    expect(await once.transaction(call, async () => '')).toEqual({ outcome: 'replayed', value: 'done' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })
})

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
