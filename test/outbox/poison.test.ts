import type pg from 'pg'
import { beforeEach, expect, it } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import { type Outbox, type OutboxEvent, outbox, relay } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { makeRecorder, type Recorder } from '../setup/recorder.ts'
import { emitAlone, expectOrder, runDry, runUntil } from './office.ts'

let shop: Shop
let pool: pg.Pool
let once: Onlyonce<PostgresTx>
let office: Outbox
let heard: Recorder
beforeEach(async () => {
  shop = await openShop()
  pool = shop.database.pool({ max: 2 })
  heard = makeRecorder()
  once = shop.open({ observe: heard })
  await once.start()
  office = outbox(once)
})

const QUICK = { relayBackoffMinMs: 1, relayBackoffMaxMs: 5, eventTriesMax: 4 }
const emitOne = (aggregate: string, payload: unknown) =>
  emitAlone(pool, office.emit, { account: 'acct_1', type: 't', payload, aggregate })

it('an event that a publish always fails with holds back its aggregate alone, and is parked', async () => {
  const [got, other]: [OutboxEvent[], OutboxEvent[]] = [[], []]
  let tries = 0
  const worker = relay(once, {
    destinations: {
      picky: async (events) => {
        tries += events.length === 1 && events[0]!.payload === 'poison' ? 1 : 0
        if (events.some(({ payload }) => payload === 'poison')) throw new Error('I cannot read this.')
        got.push(...events)
      },
      other: async (events) => void other.push(...events),
    },
    ...QUICK,
  })
  await worker.runOnce()
  for (let n = 0; n < 40; n += 1) {
    await emitOne(`a:${n % 8}`, n === 11 ? 'poison' : n)
  }
  let n = 40
  await runUntil(
    'the poison is parked',
    async () => {
      // The destination has to show that it lives: nothing is held against an event otherwise.
      await emitOne(`a:${n % 8}`, n)
      n += 1
      return heard.of('outbox_failed').some(({ kind }) => kind === 'parked')
    },
    worker,
  )
  await runUntil(
    'the rest is out',
    async () => (await office.lag()).every(({ count }) => count === 0),
    worker,
  )
  expect(other).toHaveLength(n)
  expectOrder(other)
  expect(got).toHaveLength(n - 1)
  expect(new Set(got.map(({ id }) => id)).size).toBe(n - 1)
  expectOrder(got.filter(({ aggregate }) => aggregate !== 'a:3'))
  const sequences = got.filter(({ aggregate }) => aggregate === 'a:3').map(({ sequence }) => sequence)
  // Number two of its aggregate is the one that is missing; those behind it waited until it was parked.
  expect(sequences).toEqual([1, ...sequences.slice(1).map((_, i) => i + 3)])
  expect(tries).toBeGreaterThanOrEqual(QUICK.eventTriesMax)
  const { items: parked } = await office.parked()
  expect(parked).toEqual([
    {
      account: 'acct_1',
      id: other.find(({ payload }) => payload === 'poison')!.id,
      destination: 'picky',
      name: 't',
      failure: { code: 'Error', message: 'I cannot read this.' },
    },
  ])
  expect(heard.of('outbox_failed').find(({ kind }) => kind === 'parked')!.event).toEqual({
    account: 'acct_1',
    id: parked[0]!.id,
    type: 't',
  })
})

it.each([1, 4])(
  'an event that is refused by name %i times is parked, and can be tried again',
  async (tries) => {
    let refuse = true
    const got: OutboxEvent[] = []
    const worker = relay(once, {
      destinations: {
        picky: async (events) => {
          const bad = refuse ? events.filter(({ payload }) => payload === 'bad') : []
          // Those behind it were not sent either.
          const unsent = bad.length > 0 ? events.filter(({ payload }) => payload === 'behind') : []
          const failed = new Set([...bad, ...unsent])
          got.push(...events.filter((event) => !failed.has(event)))
          return {
            failed: [
              ...bad.map(({ id }) => ({ id, error: new Error('422'), refused: true })),
              ...unsent.map(({ id }) => ({ id, error: new Error('not sent') })),
            ],
          }
        },
      },
      ...QUICK,
      eventTriesMax: tries,
    })
    await worker.runOnce()
    const [id] = await emitOne('a', 'bad')
    await emitOne('a', 'behind')
    await emitOne('b', 'good')
    await runUntil('it is parked', async () => (await office.parked()).items.length === 1, worker)
    await runUntil('those behind go on', () => got.length === 2, worker)
    expect(got.map(({ payload }) => payload).sort()).toEqual(['behind', 'good'])
    expect((await office.lag())[0]).toEqual({ destination: 'picky', count: 0, oldestAgeMs: 0, parked: 1 })
    expect(await office.retryParked({ account: 'another', id: id! })).toBe(false)
    expect(await office.retryParked({ account: 'acct_1', id: 'evt_nonsense' })).toBe(false)
    refuse = false
    expect(await office.retryParked({ account: 'acct_1', id: id! })).toBe(true)
    await runDry(worker)
    expect(got.map(({ payload }) => payload)).toContain('bad')
    expect((await office.parked()).items).toEqual([])
  },
)

it('a relay that comes later keeps what was held in order', async () => {
  let away = true
  const got: OutboxEvent[] = []
  const publish = async (events: readonly OutboxEvent[]) => {
    if (away && events.some(({ aggregate }) => aggregate === 'a')) throw new Error('not this one')
    got.push(...events)
  }
  // A long backoff, so that the first one is not tried again by itself.
  const slow = { relayBackoffMinMs: 50, relayBackoffMaxMs: 50 }
  const open = () => relay(shop.open(), { destinations: { d: publish }, ...slow })
  const first = open()
  await first.runOnce()
  for (let n = 0; n < 6; n += 1) await emitOne(n % 2 === 0 ? 'a' : 'b', n)
  await runUntil('the others are out', () => got.length === 3, first)
  const heir = open()
  for (let n = 6; n < 10; n += 1) await emitOne(n % 2 === 0 ? 'a' : 'b', n)
  await runUntil('the later ones are out', () => got.length === 5, heir)
  away = false
  for (let n = 10; n < 14; n += 1) await emitOne(n % 2 === 0 ? 'a' : 'b', n)
  await runUntil('all are out', () => got.length === 14, first, heir)
  expectOrder(got)
  expect(await office.lag()).toMatchObject([{ count: 0 }])
})

it('a destination that says it is gone is asked seldom, and loses nothing', async () => {
  let asked = 0
  const worker = relay(once, {
    destinations: {
      gone: async (events) => {
        asked += 1
        return { failed: events.map(({ id }) => ({ id, error: new Error('410') })), gone: true }
      },
    },
    ...QUICK,
  })
  await worker.runOnce()
  await emitOne('a', 1)
  for (let n = 0; n < 20; n += 1) await worker.runOnce()
  expect(asked).toBe(1)
  expect(heard.of('outbox_failed').map(({ kind }) => kind)).toEqual(['gone'])
  expect(await office.lag()).toMatchObject([{ count: 1, parked: 0 }])
})

it('a long queue behind one event is delivered in order as soon as that is', async () => {
  let away = true
  const got: OutboxEvent[] = []
  let publishes = 0
  const worker = relay(once, {
    destinations: {
      d: async (events) => {
        if (away) throw new Error('away')
        publishes += 1
        got.push(...events)
      },
    },
    ...QUICK,
  })
  await worker.runOnce()
  const events = Array.from({ length: 400 }, (_, n) => ({
    account: 'acct_1',
    type: 't',
    payload: n,
    aggregate: 'a',
  }))
  for (let n = 0; n < 5; n += 1) {
    await emitAlone(pool, office.emit, events)
    await runDry(worker)
  }
  await runUntil(
    'it has stepped aside',
    async () => (await shop.observer.query('SELECT 1 FROM onlyonce.held')).rows.length > 100,
    worker,
  )
  away = false
  await runUntil('all are out', () => got.length >= 2_000, worker)
  expect(got).toHaveLength(2_000)
  expectOrder(got)
  expect(publishes).toBeLessThan(200)
  expect((await office.parked()).items).toEqual([])
})
