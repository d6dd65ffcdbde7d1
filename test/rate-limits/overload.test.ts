import { describe, expect, it, onTestFinished } from 'vitest'
import { type OverloadOptions, overload } from '../../src/rate-limits/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { makeCall, makeGate, openShop } from '../contract/shop.ts'
import { freshDatabase } from '../setup/database.ts'
import { waitUntil } from '../setup/wait.ts'

/** A machine that many share is late by itself: where only numbers matter, no lag is too much. */
const NEVER_LATE = 1_000_000

function open(options: Partial<OverloadOptions>) {
  const load = overload({ inFlightMax: 1_000, lagMaxMs: NEVER_LATE, ...options })
  onTestFinished(() => load.stop())
  return load
}

describe('under overload', () => {
  it('new work is refused, and let in again only when it is calm', () => {
    const load = open({ inFlightMax: 10, calm: 0.5 })
    const leave = Array.from({ length: 10 }, () => load.enter())
    expect(load.admit()).toEqual({ admit: true })
    leave.push(load.enter())
    expect(load.admit()).toMatchObject({
      admit: false,
      code: 'overloaded',
      status: 503,
      retryAfterMs: 1_000,
    })
    // At the bound it would flap: one leaves, one is let in, and is too many.
    for (const left of [10, 9, 8, 7, 6]) {
      leave.pop()!()
      expect([load.inFlight, load.shedding, load.admit().admit]).toEqual([left, true, false])
    }
    leave.pop()!()
    expect([load.inFlight, load.shedding, load.admit().admit]).toEqual([5, false, true])
  })

  it('who leaves twice is counted once', async () => {
    const load = open({ inFlightMax: 1 })
    const leave = load.enter()
    leave()
    leave()
    expect(load.inFlight).toBe(0)
    await expect(load.run(() => Promise.reject(new Error('a bug')))).rejects.toThrow('a bug')
    expect(await load.run(async () => load.inFlight)).toBe(1)
    expect(load.inFlight).toBe(0)
  })

  it('an event loop that is late counts too, until it has caught up', async () => {
    const load = open({ lagMaxMs: 40 })
    await waitUntil('it is late', () => {
      const until = performance.now() + 120
      while (performance.now() < until);
      return load.shedding
    })
    expect(load.lagMs).toBeGreaterThan(40)
    expect(load.admit().admit).toBe(false)
    await waitUntil('it is calm', () => load.admit().admit)
  })

  it('a queue for connections that is too long counts, and Retry-After is as long as it takes', async () => {
    const pool = (await freshDatabase()).pool({ max: 2 })
    const load = open({ pool, queueMaxMs: 300 })
    const held = await Promise.all([pool.connect(), pool.connect()])
    expect(load.admit().admit).toBe(true)
    const waiting = Array.from({ length: 20 }, () => pool.query('SELECT 1'))
    await waitUntil('it sheds', () => load.shedding)
    await waitUntil('the wait is over a second', () => load.queueMs > 1_100)
    expect(load.admit()).toMatchObject({ admit: false, code: 'overloaded', status: 503 })
    expect((load.admit() as { retryAfterMs: number }).retryAfterMs).toBeGreaterThan(1_100)
    for (const client of held) client.release()
    await Promise.all(waiting)
    await waitUntil('it is calm', () => load.admit().admit)
    expect(load.queueMs).toBe(0)
  })

  it('a burst that is served at once is not refused, however many come with it', async () => {
    const pool = (await freshDatabase()).pool({ max: 2 })
    const load = open({ pool, queueMaxMs: 5_000 })
    const burst = Array.from({ length: 300 }, async () => {
      await pool.query('SELECT 1')
      return load.admit().admit
    })
    expect(load.admit().admit).toBe(true)
    expect(new Set(await Promise.all(burst))).toEqual(new Set([true]))
  })

  it('transactions that wait for their turn count, though they are not in the queue of the pool', async () => {
    const shop = await openShop()
    const pool = shop.database.pool({ max: 3 })
    const once = shop.open({ pool })
    const load = open({ pool, queueMaxMs: 300 })
    const gate = makeGate()
    const work = async (tx: PostgresTx) => {
      await tx.query('SELECT 1')
      await gate.pass()
    }
    const calls = Array.from({ length: 10 }, () => once.transaction(makeCall(), work))
    await waitUntil('it sheds', () => load.shedding)
    expect(pool.waitingCount).toBe(0)
    gate.open()
    await Promise.all(calls)
    await waitUntil('it is calm', () => load.admit().admit)
  })

  it.each([
    { inFlightMax: 0 },
    { queueMaxMs: 0 },
    { pool: {} as never },
    { lagMaxMs: 0 },
    { calm: 0 },
    { calm: 1.1 },
    { retryAfterMs: -1 },
  ])('bounds that make no sense are refused: %j', (options) => {
    expect(() => open(options)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })
})
