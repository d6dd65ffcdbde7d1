import type pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import { type Outbox, type OutboxEvent, outbox, relay } from '../../src/outbox/index.ts'
import { makeGate, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { emitAlone, expectOrder, runDry, runUntil } from './office.ts'

let shop: Shop
let pool: pg.Pool
let emit: Outbox['emit']
beforeEach(async () => {
  shop = await openShop()
  pool = shop.database.pool({ max: 4 })
  const once = shop.open()
  await once.start()
  emit = outbox(once).emit
})

const makeEvents = (count: number, aggregates: number, type = 't') =>
  Array.from({ length: count }, (_, n) => ({
    account: 'acct_1',
    type,
    payload: n,
    aggregate: `a:${n % aggregates}`,
  }))

describe('relays side by side', () => {
  it('deliver 10,000 events once each and in order', { timeout: 120_000 }, async () => {
    const got: OutboxEvent[] = []
    const by = [0, 0, 0]
    const publishing = new Map<string, number>()
    const workers = by.map((_, n) =>
      relay(shop.open(), {
        destinations: {
          ledger: async (events) => {
            // Nobody else may have an event of the same aggregate under way.
            for (const { aggregate } of events) {
              expect(publishing.get(aggregate!) ?? n).toBe(n)
              publishing.set(aggregate!, n)
            }
            await new Promise((resolve) => setImmediate(resolve))
            got.push(...events)
            for (const { aggregate } of events) publishing.delete(aggregate!)
            by[n]! += events.length
          },
        },
        publishMax: 100,
      }),
    )
    for (const worker of workers) await worker.runOnce()
    const emitting = (async () => {
      for (let n = 0; n < 20; n += 1) await emitAlone(pool, emit, makeEvents(500, 120))
    })()
    const relaying = workers.map(async (worker) => {
      while (got.length < 10_000) await worker.runOnce()
    })
    await Promise.all([emitting, ...relaying])
    await runDry(...workers)
    expect(got).toHaveLength(10_000)
    expect(new Set(got.map(({ id }) => id)).size).toBe(10_000)
    expectOrder(got)
    expect(by.filter((count) => count > 0).length).toBeGreaterThan(1)
  })

  it('take over what a relay that vanished has left, but not before its lease is over', async () => {
    const gate = makeGate()
    const first: OutboxEvent[] = []
    const vanished = relay(shop.open(), {
      destinations: {
        ledger: async (events) => {
          first.push(...events)
          await gate.pass()
        },
      },
    })
    await vanished.runOnce()
    const ids = await emitAlone(pool, emit, makeEvents(20, 20))
    void vanished.runOnce()
    await gate.reached
    const got: OutboxEvent[] = []
    const heir = relay(shop.open(), { destinations: { ledger: async (events) => void got.push(...events) } })
    await runDry(heir)
    const mine = new Set(first.map(({ id }) => id))
    // Only what the other did not take.
    expect(got.every(({ id }) => !mine.has(id))).toBe(true)
    await shop.observer.query(
      `UPDATE onlyonce.cursors SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL`,
    )
    await runDry(heir)
    expect(got.map(({ id }) => id).sort()).toEqual([...ids].sort())
    const places = () => shop.observer.query('SELECT lane, batch, place FROM onlyonce.cursors ORDER BY lane')
    // The heir goes on; what the one that was gone has to say then moves nothing back.
    await emitAlone(pool, emit, makeEvents(20, 20))
    await runDry(heir)
    const before = (await places()).rows
    gate.open()
    await vanished.drain()
    expect((await places()).rows).toEqual(before)
    await runDry(heir)
    expect(got).toHaveLength(40)
  })

  it('count a lease by the clock of the database', async () => {
    const gate = makeGate()
    const held = relay(shop.open(), { destinations: { ledger: () => gate.pass() } })
    await held.runOnce()
    await emitAlone(pool, emit, makeEvents(1, 1))
    void held.runOnce()
    await gate.reached
    const { rows } = await shop.observer.query(
      `SELECT extract(epoch FROM lease_until - clock_timestamp()) AS left_s FROM onlyonce.cursors
       WHERE lease_until IS NOT NULL`,
    )
    expect(rows).toHaveLength(1)
    expect(Number(rows[0].left_s)).toBeGreaterThan(20)
    expect(Number(rows[0].left_s)).toBeLessThanOrEqual(30)
    gate.open()
    await held.drain()
  })
})

describe('a destination', () => {
  it('that is away holds back nobody else, and gets everything in order when it is back', async () => {
    const heard = makeRecorder()
    const [alive, back]: [OutboxEvent[], OutboxEvent[]] = [[], []]
    let away = true
    let asked = 0
    const worker = relay(shop.open({ observe: heard }), {
      destinations: {
        dead: async (events) => {
          asked += 1
          if (away) throw new Error('connection refused')
          back.push(...events)
        },
        alive: async (events) => void alive.push(...events),
      },
      relayBackoffMinMs: 1,
      relayBackoffMaxMs: 5,
    })
    await worker.runOnce()
    for (let n = 0; n < 10; n += 1) {
      await emitAlone(pool, emit, makeEvents(200, 30))
      await runUntil('the living one has it', () => alive.length === (n + 1) * 200, worker)
    }
    await runUntil('the dead one was asked again', () => asked > 20, worker)
    expect(back).toEqual([])
    expect((await outbox(shop.open()).parked()).items).toEqual([])
    expect(heard.of('outbox_failed').every(({ kind }) => kind === 'away')).toBe(true)
    const lags = await outbox(shop.open()).lag()
    expect(lags.map(({ destination, count }) => [destination, count])).toEqual([
      ['alive', 0],
      ['dead', 2_000],
    ])
    expect(lags[1]!.oldestAgeMs).toBeGreaterThan(0)
    away = false
    await runUntil('it has caught up', () => back.length >= 2_000, worker)
    for (const got of [alive, back]) {
      expect(new Set(got.map(({ id }) => id)).size).toBe(2_000)
      expect(got).toHaveLength(2_000)
      expectOrder(got)
    }
  })

  it('that hangs does not keep the others waiting', async () => {
    const gate = makeGate()
    const got: OutboxEvent[] = []
    let signal: AbortSignal | undefined
    const worker = relay(shop.open(), {
      destinations: {
        hangs: (_, context) => {
          signal = context.signal
          return gate.pass()
        },
        quick: async (events) => void got.push(...events),
      },
      leaseMs: 4_000,
      publishTimeoutMs: 1_500,
    })
    await worker.runOnce()
    for (let n = 1; n <= 3; n += 1) {
      await emitAlone(pool, emit, makeEvents(10, 3))
      await waitUntil('the quick one has it', async () => {
        await worker.runOnce()
        return got.length === n * 10
      })
    }
    expect(signal!.aborted).toBe(false)
    await waitUntil('it is told to stop', () => signal!.aborted)
    gate.open()
    await worker.drain()
  })

  it('gets what is emitted from its first day on, and only the types that it wants', async () => {
    const [old, late]: [unknown[], unknown[]] = [[], []]
    const early = relay(shop.open(), { destinations: { old: async (events) => void old.push(...events) } })
    await early.runOnce()
    await emitAlone(pool, emit, makeEvents(50, 5, 'payment.captured'))
    await runDry(early)
    const later = relay(shop.open(), {
      destinations: {
        late: {
          publisher: { publish: async (events) => void late.push(...events.map(({ type }) => type)) },
          types: ['payment.captured'],
        },
      },
    })
    await runDry(later)
    expect(late).toEqual([])
    await emitAlone(pool, emit, makeEvents(5, 5, 'payment.captured'))
    await emitAlone(pool, emit, makeEvents(5, 5, 'payment.refunded'))
    // Whoever makes the batches makes them for all.
    await runDry(early)
    await runDry(later)
    expect(old).toHaveLength(60)
    expect(late).toEqual(Array(5).fill('payment.captured'))
    expect((await outbox(shop.open()).lag()).map(({ count }) => count)).toEqual([0, 0])
  })

  it('gets what was emitted before any relay ran, and is forgotten on request', async () => {
    const got: OutboxEvent[] = []
    await emitAlone(pool, emit, makeEvents(5, 5))
    await runDry(relay(shop.open(), { destinations: { first: async (events) => void got.push(...events) } }))
    expect(got).toHaveLength(5)
    const { forget, lag } = outbox(shop.open())
    expect(await lag()).toHaveLength(1)
    await forget('first')
    expect(await lag()).toEqual([])
  })
})

it('what is delivered everywhere is removed after its retention, and nothing else', async () => {
  const once = shop.open()
  let away = true
  const count = async (table: string) =>
    (await shop.observer.query(`SELECT count(*)::int AS n FROM onlyonce.${table}`)).rows[0].n
  const options = { relayBackoffMinMs: 1, relayBackoffMaxMs: 1 }
  const dead = async () => {
    if (away) throw new Error('away')
  }
  const destinations = { quick: async () => {}, dead }
  await relay(once, { destinations }).runOnce()
  await emitAlone(pool, emit, makeEvents(1_000, 40))
  const keeping = relay(once, { destinations, ...options })
  await runDry(keeping)
  const clean = () => runDry(relay(once, { destinations, ...options, deliveredRetentionMs: 1 }))
  await clean()
  expect(await count('events')).toBe(1_000)
  away = false
  await runUntil(
    'the other has them too',
    async () => (await outbox(once).lag()).every((lag) => lag.count === 0),
    keeping,
  )
  expect(await count('events')).toBe(1_000)
  await clean()
  expect([await count('events'), await count('batches'), await count('fresh')]).toEqual([0, 0, 0])
})
