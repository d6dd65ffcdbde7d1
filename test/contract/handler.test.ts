import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted } from '../../src/index.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  openProxy,
  openShop,
  POOLERS,
  type Shop,
  waitUntil,
} from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** Work that leaves an effect outside of any transaction of ours, as a handler does. */
const effectOf = (key: string) => leaveEffect(shop.observer, key)

describe.each(POOLERS)('a handler, with pooler %s', (pooler) => {
  test('runs once and replays its value', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const work = async () => {
      await effectOf(call.key)
      return { at: new Date(0) }
    }
    const value = { at: '1970-01-01T00:00:00.000Z' }
    expect(await once.execute(call, work)).toEqual({ outcome: 'executed', value })
    expect(await once.execute(call, work)).toEqual({ outcome: 'replayed', value })
    expect(await once.execute({ ...call, input: 'other' }, work)).toEqual({ outcome: 'key_reused' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('that throws is never run again, and says so', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = new Error('card 4111 1111 1111 1111 was refused')
    const work = async () => {
      await effectOf(call.key)
      throw error
    }
    expect(await catchError(once.execute(call, work))).toBe(error)
    const again = await catchError(once.execute(call, work))
    expect(again).toMatchObject({ code: 'handler_failed', status: 500, retryable: false })
    // Not in the message, which may be shown to clients.
    expect((again as Error).message).not.toContain('was refused')
    expect(((again as Error).cause as Error).message).toContain('card [card number] was refused')
    expect(await shop.countEffects(call.key)).toBe(1)
    expect((await once.explain(call)).state).toBe('completed')
  })

  test('that says it was not executed runs again', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const error = await catchError(once.execute(call, () => Promise.reject(notExecuted(new Error('closed')))))
    expect(error).toMatchObject({ code: 'not_executed', retryable: true, cause: new Error('closed') })
    // The claim was on a new key, and it was given back.
    expect(error).toMatchObject({ executed: 'no' })
    expect((await once.explain(call)).state).toBe('retryable')
    const fence = await once.execute(call, async (context) => context.fence)
    expect(fence).toEqual({ outcome: 'executed', value: 2 })
  })

  test('that is rerunnable runs again after a throw', async () => {
    const once = shop.open({ store: { pooler } })
    const call = { ...makeCall(), rerunnable: true }
    await catchError(once.execute(call, () => Promise.reject(new Error('no'))))
    expect((await once.execute(call, async () => 1)).outcome).toBe('executed')
  })

  test('whose value cannot be stored has been run all the same', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let runs = 0
    const work = async () => {
      runs += 1
      return { n: 1n }
    }
    expect(await catchError(once.execute(call, work))).toMatchObject({ code: 'value_not_serializable' })
    expect(await catchError(once.execute(call, work))).toMatchObject({ code: 'handler_failed' })
    expect(runs).toBe(1)
  })

  test('is in progress for others while it runs, and shared inside a process', async () => {
    const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = makeCall()
    let finish = () => {}
    const gate = new Promise<void>((resolve) => {
      finish = resolve
    })
    const first = one.execute(call, async () => {
      await gate
      return 'done'
    })
    await waitUntil('it is claimed', async () => (await other.explain(call)).state === 'in_progress')
    const told = await other.execute(call, () => Promise.reject(new Error('ran beside')))
    expect(told).toMatchObject({ outcome: 'in_progress' })
    const joined = one.execute(call, () => Promise.reject(new Error('ran beside')))
    finish()
    expect(await first).toEqual({ outcome: 'executed', value: 'done' })
    expect(await joined).toEqual({ outcome: 'replayed', value: 'done' })
    expect((await other.execute(call, async () => 'again')).outcome).toBe('replayed')
  })

  test('keeps its lease alive for as long as it works', async () => {
    const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = { ...makeCall(), leaseMs: 300 }
    const result = await one.execute(call, async () => {
      const first = (await other.explain(call)).leaseUntil!
      // Longer than its lease by far, as the database's clock tells.
      await waitUntil(
        'the lease was extended',
        async () => (await other.explain(call)).leaseUntil! > first + 900,
      )
      return (await other.execute(call, async () => 'stolen')).outcome
    })
    expect(result).toEqual({ outcome: 'executed', value: 'in_progress' })
  })

  test('stops being kept alive at inProgressMaxMs, and is told so', async () => {
    const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = { ...makeCall(), leaseMs: 150, inProgressMaxMs: 400, rerunnable: true }
    const first = catchError(
      one.execute(call, async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        // Somebody else has it before the late one comes to its end.
        await waitUntil('it was taken over', async () => (await other.explain(call)).attempts.length === 2)
        return 'late'
      }),
    )
    await waitUntil('it is claimed', async () => (await other.explain(call)).state === 'in_progress')
    let told = 'in_progress'
    await waitUntil('the key is free', async () => {
      told = (await other.execute(call, async () => 'in time')).outcome
      return told !== 'in_progress'
    })
    expect(told).toBe('executed')
    expect(await first).toMatchObject({ code: 'outcome_unknown' })
    expect(await other.execute(call, async () => '')).toEqual({ outcome: 'replayed', value: 'in time' })
  })

  test('that still runs at close hands its lease over', async () => {
    for (const rerunnable of [true, false]) {
      const [one, other] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
      const call = { ...makeCall(), rerunnable }
      void one.execute(call, () => new Promise(() => {}))
      await waitUntil('it is claimed', async () => (await other.explain(call)).state === 'in_progress')
      await one.close({ maxMs: 1 })
      const { outcome } = await other.execute(call, async () => 1)
      expect(outcome).toBe(rerunnable ? 'executed' : 'unknown')
    }
  })

  test('whose save fails is unknown to its caller, and a retry learns the truth', async () => {
    const { proxy, pool } = await openProxy(shop)
    const far = shop.open({ pool, store: { pooler, statementMaxMs: 200, connectionWaitMaxMs: 200 } })
    const near = shop.open({ store: { pooler } })
    const call = { ...makeCall(), leaseMs: 300, deadlineMs: 500 }
    await far.start()
    const error = await catchError(
      far.execute(call, async () => {
        await effectOf(call.key)
        proxy.setFault({ kind: 'black_hole' })
        return 'done'
      }),
    )
    expect(error).toMatchObject({ code: 'outcome_unknown', status: 503 })
    let told = 'in_progress'
    await waitUntil('the lease is over', async () => {
      told = (await near.execute(call, async () => effectOf(call.key))).outcome
      return told !== 'in_progress'
    })
    expect(told).toBe('unknown')
    expect(await shop.countEffects(call.key)).toBe(1)
  })
})
