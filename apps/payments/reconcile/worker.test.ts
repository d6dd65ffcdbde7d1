import { beforeEach, describe, expect, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import type { Gateway, Movement } from '../gateway/index.ts'
import { openSandbox } from '../test/sandbox.ts'
import { openTestService, type TestService } from '../test/service.ts'
import { bookReconciler, reconcile } from './index.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const { client } = await openSandbox()

let database: FreshDatabase
let shop: TestService
/** Midnight before the service was opened: as the worker sees it, that day is yesterday. */
let midnight: number
let read: string[]

/** A processor that was asked, and has one charge of today that we know nothing of. */
const processor = (changes: Partial<Gateway> = {}): Gateway => ({
  ...client,
  async *movements({ from }) {
    read.push(from.toISOString())
    const at = new Date(midnight + HOUR_MS).toISOString()
    const money = { amount: 500, currency: 'EUR', moved: 500 }
    yield {
      kind: 'payment',
      gateway_id: 'pi_x',
      account: null,
      reference: null,
      at,
      ...money,
    } satisfies Movement
  },
  ...changes,
})

beforeEach(async () => {
  database = await freshDatabase()
  shop = await openTestService({ database, gateways: {} })
  const { rows } = await shop.service.pool.query('SELECT created_at FROM payments.accounts LIMIT 1')
  midnight = Math.floor(rows[0].created_at.getTime() / DAY_MS) * DAY_MS
  read = []
})

/** A worker that thinks it is so many hours after the end of the day. */
const workerAt = (hours: number, gateway = processor(), { service } = shop) =>
  bookReconciler(
    { ...service, gateways: { test: gateway } },
    { now: async () => new Date(midnight + DAY_MS + hours * HOUR_MS) },
  )

async function runAll(worker: ReturnType<typeof workerAt>): Promise<number> {
  let done = 0
  for (let i = 0; i < 50; i += 1) {
    const ran = await worker.runOnce()
    done += ran.done
    if (!ran.more) return done
  }
  throw new Error('It never ends.')
}

const RUNS = `SELECT from_at, missing_here::int FROM payments.reconciliation_runs WHERE account = 'stripe:test' ORDER BY read_at, from_at`
const runs = async () => (await shop.service.pool.query(RUNS)).rows
const day = (n: number, missingHere: number) => ({
  from_at: new Date(midnight + n * DAY_MS),
  missing_here: missingHere,
})
const EVENTS = `SELECT count(*)::int FROM onlyonce.events WHERE type = 'reconciliation.difference'`
const events = async () => (await shop.service.pool.query(EVENTS)).rows[0].count

describe('a day', () => {
  it('is compared when it is some hours old, again when it is a day and a week old, and told once', async () => {
    expect(await runAll(workerAt(2.9))).toBe(0)
    expect(read).toEqual([])
    expect(await runAll(workerAt(3))).toBe(1)
    expect(await runAll(workerAt(26))).toBe(0)
    expect(await runs()).toEqual([day(0, 1)])
    // The second day is due for the first time, and the first one for the second.
    expect(await runAll(workerAt(27))).toBe(2)
    expect(await runAll(workerAt(8 * 24))).toBeGreaterThan(2)
    expect(await runAll(workerAt(8 * 24 + 3))).toBeGreaterThan(1)
    expect((await runs()).filter(({ from_at: fromAt }) => fromAt.getTime() === midnight)).toEqual([
      day(0, 1),
      day(0, 1),
      day(0, 1),
    ])
    expect(await events()).toBe(1)
    // Alarms go by it.
    const counted = 'payments_book_differences_total{books="stripe:test"} 1\n'
    expect(await shop.service.metrics.metrics()).toContain(counted)
  })

  it('before there was any account is not compared', async () => {
    expect(await runAll(workerAt(5))).toBe(1)
    expect(await runs()).toEqual([day(0, 1)])
  })

  it('is compared by one of all who want to', async () => {
    const other = await openTestService({ database, gateways: {} })
    const workers = [
      workerAt(5),
      workerAt(5),
      workerAt(5, processor(), other),
      workerAt(5, processor(), other),
    ]
    const done = await Promise.all(workers.map(runAll))
    expect(done.toSorted()).toEqual([0, 0, 0, 1])
    expect(read).toHaveLength(1)
    expect(await Promise.all(workers.map(runAll))).toEqual([0, 0, 0, 0])
    expect(await runs()).toEqual([day(0, 1)])
    expect(await events()).toBe(1)
  })

  it('that could not be compared is tried again, and keeps no other from its turn', async () => {
    const failing = processor({
      async *movements(range) {
        if (range.from.getTime() > midnight) throw new Error('The processor is away.')
        yield* processor().movements(range)
      },
    })
    // Two days are due, and the newer one comes first.
    expect(await workerAt(28, failing).runOnce()).toEqual({ done: 1, more: false })
    await expect(workerAt(28, failing).runOnce()).rejects.toThrow('The processor is away.')
    expect(await runs()).toEqual([day(0, 1)])
    expect(await runAll(workerAt(28))).toBe(1)
    expect(await runs()).toEqual([day(0, 1), day(1, 0)])
  })

  it('that somebody has compared before the lock was there is not compared again', async () => {
    const { service } = shop
    const at = new Date(midnight + DAY_MS + 5 * HOUR_MS)
    let asked = 0
    const now = async () => {
      asked += 1
      const wholeDay = { from: new Date(midnight), to: new Date(midnight + DAY_MS), now: at }
      if (asked === 2) await reconcile(service, processor(), wholeDay)
      return at
    }
    const worker = bookReconciler({ ...service, gateways: { test: processor() } }, { now })
    expect(await worker.runOnce()).toEqual({ done: 0, more: false })
    expect(asked).toBe(2)
    expect(await runs()).toEqual([day(0, 1)])
  })

  it('whose lock was lost meanwhile is left to whoever has it now', async () => {
    const late = processor({
      async *movements(range) {
        yield* processor().movements(range)
        // As if this process had stood still for longer than the lock lives.
        await shop.service.pool.query(`UPDATE onlyonce.locks SET held_until = now() - interval '1 second'`)
        expect(await runAll(workerAt(5))).toBe(1)
      },
    })
    await expect(workerAt(5, late).runOnce()).rejects.toMatchObject({ code: 'fence_stale' })
    expect(await runs()).toEqual([day(0, 1)])
  })
})
