import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted } from '../../src/index.ts'
import { behindPooler } from '../setup/pooler.ts'
import {
  beginOutside,
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  POOLERS,
  type Shop,
  settleWithin,
  waitUntil,
} from './shop.ts'

const SOON_MS = 20_000
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const effectOf = (key: string) => leaveEffect(shop.observer, key)
const endLease = (key: string) =>
  shop.observer.query('UPDATE onlyonce.records SET lease_until = clock_timestamp() WHERE key = $1', [key])

describe.each(POOLERS)('a handler, with pooler %s', (pooler) => {
  test('that did something is not called unexecuted because a call inside it was', async () => {
    const once = shop.open({ store: { pooler } })
    for (const inner of ['handler', 'transaction'] as const) {
      const [outer, nested] = [makeCall(), makeCall()]
      const work = async () => {
        await effectOf(outer.key)
        await once[inner === 'handler' ? 'execute' : inner](nested, () => Promise.reject(notExecuted()))
      }
      expect(await catchError(once.execute(outer, work))).toMatchObject({
        code: 'handler_failed',
        executed: 'unknown',
        cause: { code: 'not_executed', executed: 'no' },
      })
      expect(await catchError(once.execute(outer, work))).toMatchObject({ code: 'handler_failed' })
      expect(await shop.countEffects(outer.key)).toBe(1)
    }
  })

  test('that never ends keeps nobody in its own process waiting for ever', async () => {
    const once = shop.open({ store: { pooler } })
    const call = { ...makeCall(), leaseMs: 200, inProgressMaxMs: 400 }
    const first = catchError(once.execute(call, () => new Promise(() => {})))
    const joined = await settleWithin(
      SOON_MS,
      once.execute({ ...call, deadlineMs: 50 }, async () => 1),
    )
    expect(joined.outcome).toBe('in_progress')
    await waitUntil('the key is told of', async () => {
      // One that waits for the first in this process hears the same as the first.
      const told = await once.execute({ ...call, deadlineMs: 50 }, async () => 1).catch(() => null)
      return told?.outcome === 'unknown'
    })
    expect(await settleWithin(SOON_MS, first)).toMatchObject({ code: 'outcome_unknown', executed: 'unknown' })
  })

  test('is told to stop when its time is over, not at its next sign of life', async () => {
    const once = shop.open({ store: { pooler } })
    const call = { ...makeCall(), leaseMs: 60_000, inProgressMaxMs: 300 }
    const error = await catchError(
      once.execute(call, ({ signal }) => {
        return settleWithin(
          SOON_MS,
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
        )
      }),
    )
    // It has begun, so that its time is over does not mean that it changed nothing.
    expect(error).toMatchObject({ code: 'outcome_unknown', executed: 'unknown' })
  })

  test('does not begin when its lease ran out while the claim was answered', async () => {
    const { proxy, pool } = await openProxy(shop)
    const late = shop.open({ pool, store: { pooler } })
    const other = shop.open({ store: { pooler } })
    await late.start()
    const call = { ...makeCall(), leaseMs: 300, rerunnable: true }
    proxy.setFault({ kind: 'delay', delayMs: 1_500, direction: 'to_client' })
    let ran = false
    const told = catchError(
      late.execute(call, async () => {
        ran = true
      }),
    )
    await waitUntil('it is claimed', async () => (await other.explain(call)).state === 'in_progress')
    let taken: unknown
    await waitUntil('the lease is over', async () => {
      taken = await other.execute(call, async () => 'other')
      return (taken as { outcome: string }).outcome === 'executed'
    })
    expect(await told).toMatchObject({ code: 'lease_lost' })
    expect(ran).toBe(false)
  })

  test('keeps its lease although the connection of a sign of life has fallen silent', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, store: { pooler } })
    const other = shop.open({ store: { pooler } })
    await once.start()
    const call = { ...makeCall(), leaseMs: 1_500 }
    const result = await settleWithin(
      SOON_MS,
      once.execute(call, async () => {
        const first = (await other.explain(call)).leaseUntil!
        // The connection that is idle now carries the next sign of life; new ones are sound.
        proxy.setFault({ kind: 'black_hole' })
        await waitUntil('a sign of life is lost', () => pool.idleCount === 0)
        proxy.setFault(null)
        await waitUntil(
          'the lease was extended twice',
          async () => (await other.explain(call)).leaseUntil! > first + 1_600,
        )
        return (await other.execute(call, async () => 'stolen')).outcome
      }),
    )
    expect(result).toEqual({ outcome: 'executed', value: 'in_progress' })
  })

  test('does not overwrite the record of another attempt that begins where its own was deleted', async () => {
    for (const together of [1, 3]) {
      const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
      const calls = Array.from({ length: together }, () => makeCall())
      const gates = calls.map(() => makeGate())
      const olds = calls.map((call, i) =>
        catchError(
          one.execute(call, async () => {
            await gates[i]!.pass()
            return 'old'
          }),
        ),
      )
      await Promise.all(gates.map(({ reached }) => reached))
      await shop.observer.query('DELETE FROM onlyonce.records WHERE key = ANY ($1)', [
        calls.map(({ key }) => key),
      ])
      const news = calls.map((call, i) =>
        other.execute(call, async () => {
          gates[i]!.open()
          expect(await olds[i]).toMatchObject({ code: 'lease_lost' })
          return 'new'
        }),
      )
      for (const result of await Promise.all(news))
        expect(result).toEqual({ outcome: 'executed', value: 'new' })
      for (const call of calls) {
        expect(await other.execute(call, async () => '')).toEqual({ outcome: 'replayed', value: 'new' })
      }
    }
  })

  // A pooler with two connections is filled by those who wait in it, however large the pool in front of it is.
  const sizes = behindPooler('two connections are two transactions') ? [1, 2] : [1, 2, 5]
  test.each(sizes)('is not held up by as many blocked keys as there are connections: %s', async (size) => {
    const bounds = { pooler, lockWaitMaxMs: 60_000, statementMaxMs: 60_000 }
    const once = shop.open({ store: bounds, poolOptions: { max: size } })
    await once.start()
    const held = Array.from({ length: size }, () => makeCall())
    const holder = await beginOutside(shop)
    for (const call of held) await shop.open().within(holder, call, async () => 'held')
    const blocked = held.map((call) => once.execute(call, async () => 'twice'))
    await settleWithin(
      SOON_MS,
      once.execute(makeCall(), async () => 'free'),
    )
    await holder.query('COMMIT')
    for (const end of await Promise.all(blocked)) expect(['in_progress', 'replayed']).toContain(end.outcome)
  })

  test('is claimed again over another connection when nobody answers', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, store: { pooler, statementMaxMs: 500 } })
    await once.start()
    const calls = Array.from({ length: 20 }, () => makeCall())
    proxy.setFault({ kind: 'black_hole', direction: 'to_client' })
    const all = calls.map((call) => once.execute(call, async () => call.key))
    await waitUntil('they are claimed', async () => {
      const { rows } = await shop.observer.query('SELECT 1 FROM onlyonce.records WHERE key = ANY ($1)', [
        calls.map(({ key }) => key),
      ])
      return rows.length === calls.length
    })
    proxy.setFault(null)
    const results = await settleWithin(SOON_MS, Promise.all(all))
    expect(results).toEqual(calls.map(({ key }) => ({ outcome: 'executed', value: key })))
  })

  test('that could not be claimed for sure gives back what it may have claimed', async () => {
    const { proxy, pool } = await openProxy(shop)
    const bounds = { pooler, statementMaxMs: 100, connectionWaitMaxMs: 200 }
    const once = shop.open({ pool, store: bounds, deadlineMs: 300 })
    const other = shop.open({ store: { pooler } })
    await once.start()
    const call = makeCall()
    proxy.setFault({ kind: 'black_hole', direction: 'to_client' })
    const error = await catchError(once.execute(call, async () => effectOf(call.key)))
    expect(error).toMatchObject({ status: 503 })
    expect((await other.explain(call)).state).toBe('in_progress')
    proxy.setFault(null)
    await waitUntil('it is given back', async () => (await other.explain(call)).state === 'retryable')
    expect((await other.execute(call, async () => 'now')).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(0)
  })

  test('leaves no warnings in the log of the server', async () => {
    const pool = shop.database.pool({ max: 1 })
    const notices: unknown[] = []
    pool.on('connect', (client) => client.on('notice', (notice) => notices.push(notice)))
    const once = shop.open({ pool, store: { pooler } })
    await once.execute(makeCall(), async () => 1)
    await catchError(once.execute(makeCall(), () => Promise.reject(notExecuted())))
    expect(notices).toEqual([])
  })

  test('whose record is locked and whose lease is over is in progress for others, as with any lock', async () => {
    const other = shop.open({ store: { pooler, lockWaitMaxMs: 100 } })
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const gate = makeGate()
    const first = once.execute(call, () => gate.pass())
    await gate.reached
    await endLease(call.key)
    const holder = await beginOutside(shop)
    await holder.query('SELECT 1 FROM onlyonce.records WHERE key = $1 FOR UPDATE', [call.key])
    expect(
      (
        await settleWithin(
          SOON_MS,
          other.execute(call, async () => 1),
        )
      ).outcome,
    ).toBe('in_progress')
    await holder.query('COMMIT')
    expect((await other.execute(call, async () => 1)).outcome).toBe('unknown')
    gate.open()
    expect(await first).toMatchObject({ outcome: 'executed' })
  })
})
