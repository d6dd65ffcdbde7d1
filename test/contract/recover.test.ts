import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import type { Onlyonce, Recover, Recovered } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { recoverer } from '../../src/workers/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { makeCall, makeGate, openShop, type Shop, settleWithin } from './shop.ts'
import { crash, LEASE_MS, worldsOf } from './worlds.ts'

let shop: Shop
const WORLDS = worldsOf(() => shop)

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

describe.each(Object.keys(WORLDS))('a handler that gave no outcome, in %s', (name) => {
  const world = () => WORLDS[name]!()

  test('is parked with an alarm where nobody can find out, and its client hears so', async () => {
    const here = world()
    const { call } = await crash(here)
    const heard = makeRecorder()
    const worker = here.open({ observe: heard })
    await recoverer(worker).runOnce()
    expect(heard.of('parked')).toMatchObject([{ id: { key: call.key }, failure: { code: 'owner_vanished' } }])
    expect(await worker.execute(call, async () => 'twice')).toMatchObject({ outcome: 'parked' })
    const { state, next } = await worker.explain(call)
    expect({ state, next }).toEqual({ state: 'parked', next: expect.stringContaining('operator') })
  })

  test('is parked by the next retry as well, and until its grace is over the retry hears when', async () => {
    const here = world()
    const { call } = await crash(here)
    const patient = here.open({ graceMs: 3_600_000 })
    const met = await patient.execute(call, async () => 'twice')
    if (met.outcome !== 'unknown') throw new Error(`It met ${met.outcome}.`)
    expect(met.retryAfterMs).toBeGreaterThan(3_000_000)
    await here.hurry(call.key)
    expect(await patient.execute(call, async () => 'twice')).toMatchObject({ outcome: 'parked' })
  })

  test.each([
    ['a worker', (once: Onlyonce<never>) => recoverer(once).runOnce()],
    ['a retry', async () => {}],
  ] as const)('is answered with what recover finds, asked by %s', async (_, look) => {
    const here = world()
    const asked: unknown[] = []
    const recover: Recover = async ({ signal: _, ...context }) => {
      asked.push(context)
      return { status: 'found', value: { id: 'order_1' } }
    }
    const { call, told, answer, derivedKey } = await crash(here, { recover: { 'orders.create': recover } })
    const other = here.open({ recover: { 'orders.create': recover } })
    await look(other)
    const retry = await other.execute(call, async () => 'twice')
    expect(retry).toEqual({ outcome: 'replayed', value: { id: 'order_1' } })
    const { account, operation, key } = call
    expect(asked).toEqual([{ account, operation, key, derivedKey }])
    expect(derivedKey).toHaveLength(43)
    answer()
    expect(await told).toEqual({ code: 'lease_lost' })
  })

  test('runs again only when recover says that it is void', async () => {
    const here = world()
    const answers: Recovered[] = [{ status: 'cannot_tell' }, { status: 'pending' }, { status: 'void' }]
    const recover = () => answers.shift()!
    const { call } = await crash(here, { recover: { 'orders.create': recover } })
    const heard = makeRecorder()
    const other = here.open({
      recover: { 'orders.create': recover },
      observe: heard,
      reconcileAfterMs: [50_000, 50_000],
    })
    for (let looks = 1; looks <= 2; looks += 1) {
      await recoverer(other).runOnce()
      const met = await other.execute(call, async () => 'twice')
      if (met.outcome !== 'unknown') throw new Error(`It met ${met.outcome}.`)
      expect(met.retryAfterMs).toBeGreaterThan(40_000)
      expect((await other.explain(call)).lookAt).not.toBeNull()
      await here.hurry(call.key)
    }
    expect(await other.execute(call, async () => 'again')).toEqual({ outcome: 'executed', value: 'again' })
    expect(heard.of('reconcile_failed').map(({ failure }) => failure.code)).toEqual([
      'recover_cannot_tell',
      'recover_pending',
    ])
    expect(heard.of('reconcile_resolved')).toMatchObject([{ state: 'retryable' }])
  })

  test('is parked when recover cannot tell to the end, whatever it does instead of telling', async () => {
    const here = world()
    const answers: (() => unknown)[] = [
      () => Promise.reject(new Error('nobody there')),
      () => undefined,
      () => ({ status: 'not_found' }),
      () => ({ status: 'found' }),
    ]
    const recover = (() => answers.shift()!()) as Recover
    const { call } = await crash(here, { recover: { 'orders.create': recover } })
    const heard = makeRecorder()
    const other = here.open({
      recover: { 'orders.create': recover },
      observe: heard,
      reconcileAfterMs: [1, 1, 1],
    })
    for (let looks = 1; looks <= 4; looks += 1) {
      await recoverer(other).runOnce()
      await here.hurry(call.key)
    }
    expect(heard.of('parked')).toMatchObject([{ failure: { code: 'recover_exhausted' } }])
    expect(await other.execute(call, async () => 'twice')).toMatchObject({ outcome: 'parked' })
  })

  test('is left to the processes that have its recover', async () => {
    const here = world()
    const recover: Recover = () => ({ status: 'found', value: 'found' })
    const { call } = await crash(here, { recover: { 'orders.create': recover } })
    const without = here.open()
    await recoverer(without).runOnce()
    expect(await without.execute(call, async () => 'twice')).toMatchObject({ outcome: 'unknown' })
    await recoverer(here.open({ recover: { 'orders.create': recover } })).runOnce()
    expect(await without.execute(call, async () => 'twice')).toEqual({ outcome: 'replayed', value: 'found' })
  })

  test('is asked about by one process at a time', async () => {
    const here = world()
    let asked = 0
    const gate = makeGate()
    const recover: Recover = async () => {
      asked += 1
      await gate.pass()
      return { status: 'found', value: asked }
    }
    const { call } = await crash(here, { recover: { 'orders.create': recover } })
    const [one, two] = [0, 1].map(() => here.open({ recover: { 'orders.create': recover } })) as [
      Onlyonce<never>,
      Onlyonce<never>,
    ]
    const looking = recoverer(one).runOnce()
    await gate.reached
    await recoverer(two).runOnce()
    const met = await two.execute(call, async () => 'twice')
    if (met.outcome !== 'unknown') throw new Error(`It met ${met.outcome}.`)
    expect(met.retryAfterMs).toBeGreaterThan(LIMITS.recoverMaxMs)
    gate.open()
    await looking
    expect(asked).toBe(1)
    expect(await two.execute(call, async () => 'twice')).toEqual({ outcome: 'replayed', value: 1 })
  })

  test('keeps the reply of its owner that comes while recover is asked, or after it was parked', async () => {
    const here = world()
    const gate = makeGate()
    const recover: Recover = async () => {
      await gate.pass()
      return { status: 'void' }
    }
    const { call, told, answer } = await crash(here, { recover: { 'orders.create': recover } })
    const other = here.open({ recover: { 'orders.create': recover } })
    const looking = recoverer(other).runOnce()
    await gate.reached
    answer()
    expect(await told).toEqual({ outcome: 'executed', value: 'late' })
    gate.open()
    await looking
    expect(await other.execute(call, async () => 'twice')).toEqual({ outcome: 'replayed', value: 'late' })

    const parked = await crash(here)
    await recoverer(here.open()).runOnce()
    parked.answer()
    expect(await parked.told).toEqual({ outcome: 'executed', value: 'late' })
  })

  test('becomes retryable where it may run again, without its client', async () => {
    const here = world()
    const owner = here.open()
    const call = { ...makeCall(), leaseMs: LEASE_MS, rerunnable: true }
    const gate = makeGate()
    const told = owner.execute(call, () => gate.pass()).catch((error) => error.code)
    await gate.reached
    await here.endLease(call.key)
    const other = here.open()
    await recoverer(other).runOnce()
    expect((await other.explain(call)).state).toBe('retryable')
    expect(await other.execute(call, async () => 'again')).toEqual({ outcome: 'executed', value: 'again' })
    gate.open()
    expect(await told).toBe('lease_lost')
  })
})

describe('recover', () => {
  test('of a route answers with the reply that it gives', async () => {
    const here = WORLDS.postgres!()
    const recover: Recover = ({ derivedKey }) => ({
      status: 'found',
      reply: {
        status: 201,
        headers: { 'content-type': 'application/json' },
        body: `{"id":"${derivedKey}"}`,
      },
    })
    const gate = makeGate()
    const seen: string[] = []
    const routeOf = (once: Onlyonce<never>) =>
      idempotent(
        once,
        { account: () => 'acct_1', operation: 'orders.create', leaseMs: LEASE_MS, recover },
        async (_, { idempotency: context }) => {
          seen.push(context!.derivedKey)
          await gate.pass()
          return new Response(null, { status: 204 })
        },
      )
    const key = randomUUID()
    const request = () =>
      new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key } })
    const first = routeOf(here.open())(request())
    await gate.reached
    await here.endLease(key)
    const second = await routeOf(here.open())(request())
    expect([second.status, await second.json()]).toEqual([201, { id: seen[0] }])
    gate.open()
    expect(await (await first).json()).toMatchObject({ code: 'lease_lost' })
    expect(seen).toHaveLength(1)
  })

  test.each([
    [{ recover: 1 }, 'recover is a function'],
    [{ recover: () => {}, rerunnable: true }, 'rerunnable'],
    [{ recover: () => {}, protect: 'transaction' }, 'rolled back'],
    [{ recover: () => {}, scope: 'account' }, 'scope'],
  ])('is refused on a route: %j', (policy, why) => {
    const once = WORLDS.memory!().open()
    const options = { account: () => 'a', operation: 'o', ...policy } as never
    expect(() => idempotent(once, options, async () => new Response())).toThrow(why)
  })

  test('is refused twice under one name', () => {
    const once = WORLDS.memory!().open({ recover: { o: () => ({ status: 'void' }) } })
    const other: Recover = () => ({ status: 'void' })
    const options = { account: () => 'a', operation: 'o', recover: other }
    expect(() => idempotent(once, options, async () => new Response())).toThrow('two recover functions')
  })

  test('that never answers is not waited for', async () => {
    const here = WORLDS.postgres!()
    let aborted = false
    const recover: Recover = ({ signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      return new Promise(() => {})
    }
    const { call } = await crash(here, { recover: { 'orders.create': recover } })
    const other = here.open({ recover: { 'orders.create': recover } })
    const met = await settleWithin(
      LIMITS.recoverMaxMs * 3,
      other.execute(call, async () => 'twice'),
    )
    expect(met).toMatchObject({ outcome: 'unknown' })
    expect(aborted).toBe(true)
  }, 60_000)

  test('is not asked about what an operator has decided', async () => {
    const here = WORLDS.postgres!()
    let asked = 0
    const recover: Recover = () => {
      asked += 1
      return { status: 'void' }
    }
    const { call } = await crash(here)
    const other = here.open({ recover: { 'orders.create': recover } })
    await operator(other).park(call, { by: 'ann', why: 'looking into it' })
    await recoverer(other).runOnce()
    expect(asked).toBe(0)
    await operator(other).unpark(call, { by: 'ann', why: 'ask it' })
    await recoverer(other).runOnce()
    expect(asked).toBe(1)
    expect((await other.explain(call)).state).toBe('retryable')
  })
})
