import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { inbox, type OutboxEvent, outbox, relay } from '../../src/outbox/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { beginCaller, catchError, makeCall, openShop, SECRET, type Shop } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { emitAlone, expectOrder, runDry } from './office.ts'

let shop: Shop
let pool: pg.Pool
beforeAll(async () => {
  shop = await openShop()
  pool = shop.database.pool({ max: 8 })
})

const event = { account: 'acct_1', type: 'payment.captured', payload: { id: 7, at: new Date(0) } }

describe('an event', () => {
  it('is delivered when its transaction commits, and never was when it does not', async () => {
    const once = shop.open()
    await once.start()
    const { emit, stage } = outbox(once)
    const got: OutboxEvent[] = []
    const ran: string[] = []
    const worker = relay(once, {
      destinations: { commits: async (events) => void got.push(...events) },
      jobs: { commits: async ({ id }) => void ran.push(id) },
    })
    await worker.runOnce()
    const undone = await beginCaller(shop)
    await emit(undone, { ...event, aggregate: 'payment:7' })
    await stage(undone, { account: 'acct_1', job: 'commits' })
    await runDry(worker)
    expect([got, ran]).toEqual([[], []])
    await undone.query('ROLLBACK')
    await runDry(worker)
    expect([got, ran]).toEqual([[], []])
    const done = await beginCaller(shop)
    const ids = await emit(done, [event, { ...event, aggregate: 'payment:7' }])
    const staged = await stage(done, { account: 'acct_1', job: 'commits' })
    await done.query('COMMIT')
    await runDry(worker)
    expect(got.map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(staged).toEqual({ staged: true, id: ran[0] })
    expect(ids[0]).toMatch(/^evt_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(got.find(({ aggregate }) => aggregate !== null)).toEqual({
      id: ids[1],
      account: 'acct_1',
      type: 'payment.captured',
      aggregate: 'payment:7',
      // What was rolled back has left no gap.
      sequence: 1,
      payload: { id: 7, at: '1970-01-01T00:00:00.000Z' },
      emittedAt: expect.any(Number),
    })
  })

  it('goes through a protected transaction, which is still one commit, and needs no second connection', async () => {
    const once = shop.open({ poolOptions: { max: 1 } })
    await once.start()
    const { emit, stage } = outbox(once)
    const got: unknown[] = []
    const call = makeCall()
    const run = () =>
      once.transaction(call, async (tx) => {
        await emit(tx, { account: 'acct_1', type: 'protected', payload: call.key })
        await stage(tx, { account: 'acct_1', job: 'protected', payload: call.key })
        return 1
      })
    expect(await run()).toEqual({ outcome: 'executed', value: 1 })
    expect(await run()).toEqual({ outcome: 'replayed', value: 1 })
    const worker = relay(once, {
      destinations: {
        protected: {
          publisher: async (events) => void got.push(...events.map(({ payload }) => payload)),
          types: ['protected'],
        },
      },
      jobs: { protected: async ({ payload }) => void got.push(payload) },
    })
    await runDry(worker)
    expect(got).toEqual([call.key, call.key])
  })

  it('is refused when it cannot be told as it is', async () => {
    const { emit, stage } = outbox(shop.open())
    const tx = await beginCaller(shop)
    const refused = [
      [emit(tx, { ...event, payload: { n: Number.NaN } }), 'value_not_serializable'],
      [emit(tx, { ...event, payload: new Map() }), 'value_not_serializable'],
      [emit(tx, { ...event, payload: 'x'.repeat(2_000_000) }), 'value_too_large'],
      [emit(tx, { ...event, account: '' }), 'account_invalid'],
      [emit(tx, { ...event, type: 'a\0b' }), 'option_invalid'],
      [emit(tx, { ...event, aggregate: 'a'.repeat(256) }), 'option_invalid'],
      [emit(tx, [event, { ...event, account: 'acct_2' }]), 'option_invalid'],
      [stage(tx, { account: 'acct_1', job: ' ' }), 'option_invalid'],
      [stage(tx, { account: 'acct_1', job: 'a', runAfterMs: -1 }), 'option_invalid'],
    ] as const
    for (const [promise, code] of refused) expect((await catchError(promise)).code).toBe(code)
  })

  it('carries any text', async () => {
    const once = shop.open()
    const payload = { text: `"'\\ {},NULL \u0000 \ud83d ü\n`, list: [null, true, 1.5] }
    const got: unknown[] = []
    const worker = relay(once, {
      destinations: {
        texts: async (events) => void got.push(...events.map((one) => [one.type, one.payload])),
      },
    })
    await worker.runOnce()
    const type = `a "quoted" {type}, \\ NULL`
    await emitAlone(pool, outbox(once).emit, [
      { account: `it's {"1"}`, type, payload },
      { account: `it's {"1"}`, type, payload },
    ])
    await runDry(worker)
    expect(got).toEqual([
      [type, payload],
      [type, payload],
    ])
  })
})

describe.each(['BEGIN', 'BEGIN ISOLATION LEVEL SERIALIZABLE'])('within an aggregate, after %s', (begin) => {
  it('numbers have no gap and no double, whoever emits, and the order is that of the commits', async () => {
    const once = shop.open()
    const { emit } = outbox(once)
    const account = `acct ${begin}`
    const got: OutboxEvent[] = []
    const worker = relay(once, { destinations: { [begin]: async (events) => void got.push(...events) } })
    await worker.runOnce()
    let relaying = true
    const relayed = (async () => {
      while (relaying) await worker.runOnce()
    })()
    const emitted: string[] = []
    await Promise.all(
      Array.from({ length: 8 }, async (_, clerk) => {
        for (let n = 0; n < 25; n += 1) {
          const events = ['b', 'a', 'b'].map((aggregate) => ({
            account,
            type: 't',
            payload: [clerk, n],
            aggregate,
          }))
          for (let done = false; !done; ) {
            try {
              emitted.push(...(await emitAlone(pool, emit, n % 2 === 0 ? events : events[1]!, begin)))
              done = true
            } catch (error) {
              expect(['40001', '40P01']).toContain((error as { code: string }).code)
            }
          }
        }
      }),
    )
    relaying = false
    await relayed
    await runDry(worker)
    expect(got.map(({ id }) => id).sort()).toEqual(emitted.sort())
    expectOrder(got)
    expect(new Set(got.map(({ aggregate }) => aggregate))).toEqual(new Set(['a', 'b']))
  })
})

describe('a store', () => {
  it('without a database says so at once', () => {
    const once = onlyonce({ store: memory(), secret: SECRET })
    for (const open of [
      () => outbox(once),
      () => inbox(once),
      () => relay(once, { jobs: { a: async () => {} } }),
    ]) {
      expect(open).toThrow(expect.objectContaining({ code: 'option_invalid' }))
      expect(open).toThrow(/no outbox/)
    }
  })

  it('that is sealed and observed passes events through', async () => {
    const heard = makeRecorder()
    const once = shop.open({ encryption: 'k'.repeat(32), observe: heard })
    const { emit, lag } = outbox(once)
    const got: OutboxEvent[] = []
    const worker = relay(once, { destinations: { sealed: async (events) => void got.push(...events) } })
    await worker.runOnce()
    const ids = await emitAlone(pool, emit, event)
    expect((await lag()).find(({ destination }) => destination === 'sealed')).toMatchObject({ count: 1 })
    await runDry(worker)
    expect(got.map(({ id }) => id)).toEqual(ids)
    expect(heard.of('outbox_delivered')).toEqual([
      { signal: 'outbox_delivered', destination: 'sealed', count: 1 },
    ])
    expect(heard.of('outbox_lag')).toEqual([
      { signal: 'outbox_lag', destination: 'sealed', count: 0, oldestAgeMs: 0, parked: 0 },
    ])
  })
})

it('a relay is refused what it cannot work with', () => {
  const once = shop.open()
  const bad = [
    {},
    { destinations: { '': async () => {} } },
    { destinations: { a: {} } },
    { jobs: { a: 1 } },
    { jobs: { a: async () => {} }, lease: 1 },
    { jobs: { a: async () => {} }, jobsAtOnce: 0.5 },
    { destinations: { a: async () => {} }, publishTimeoutMs: 20_000 },
  ] as unknown as Parameters<typeof relay>[1][]
  for (const options of bad) {
    expect(() => relay(once, options)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  }
})
