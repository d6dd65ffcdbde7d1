import type pg from 'pg'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import { type Job, type Outbox, outbox, relay } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder, type Recorder } from '../setup/recorder.ts'
import { inTransaction, runDry, runUntil } from './office.ts'

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
  office = outbox(once)
})

const QUICK = { jobBackoffMinMs: 1, jobBackoffMaxMs: 5, jobAttemptsMax: 4 }
const account = 'acct_1'
const stageOne = (job: string, rest: object = {}) =>
  inTransaction(pool, (tx) => office.stage(tx, { account, job, ...rest }))
const rows = async () => (await shop.observer.query('SELECT * FROM onlyonce.jobs')).rows
/** As if so much time had passed. */
const endLeases = () => shop.observer.query(`UPDATE onlyonce.jobs SET lease_until = clock_timestamp()`)

describe('a job', () => {
  it('runs once, with what it was staged with, and is gone', async () => {
    const ran: Job[] = []
    const worker = relay(once, { jobs: { send_receipt: async (job) => void ran.push(job) } })
    const staged = await stageOne('send_receipt', { payload: { id: 7 } })
    await stageOne('of_another_relay')
    await runDry(worker)
    await runDry(worker)
    expect(ran).toEqual([
      {
        account,
        id: staged.staged && staged.id,
        job: 'send_receipt',
        key: null,
        payload: { id: 7 },
        attempts: 1,
        stagedAt: expect.any(Number),
      },
    ])
    expect((await rows()).map(({ job }) => job)).toEqual(['of_another_relay'])
    expect(heard.of('job_ended')).toMatchObject([{ job: 'send_receipt', outcome: 'done', attempts: 1 }])
  })

  it('is listed page by page when it is parked', async () => {
    const staged = [await stageOne('hopeless'), await stageOne('hopeless'), await stageOne('hopeless')]
    const hopeless = async () => {
      throw new Error('never')
    }
    const worker = relay(once, { jobs: { hopeless }, ...QUICK })
    await runUntil('all are parked', async () => (await office.parked()).items.length === 3, worker)
    const listed: string[] = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof office.parked>> = await office.parked({ limit: 2, cursor })
      expect(page.items.length).toBeLessThanOrEqual(2)
      listed.push(...page.items.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== null && listed.length < 9)
    expect(listed.sort()).toEqual(staged.map((one) => one.staged && one.id).sort())
    await expect(office.parked({ cursor: 'nonsense' })).rejects.toThrow(
      /cursor is not that of an earlier page/,
    )
    await expect(office.parked({ limit: 0 })).rejects.toThrow(/limit/)
  })

  it('runs again when it failed, and is parked with its error after so many attempts', async () => {
    let [flaky, hopeless] = [0, 0]
    const worker = relay(once, {
      jobs: {
        flaky: async () => {
          flaky += 1
          if (flaky < 3) throw new Error('not yet')
        },
        hopeless: async () => {
          hopeless += 1
          throw new TypeError(`never, and card 4242424242424242`)
        },
      },
      ...QUICK,
    })
    await stageOne('flaky')
    const staged = await stageOne('hopeless')
    await runUntil('it is parked', async () => (await office.parked()).items.length === 1, worker)
    await runUntil('the other is done', async () => (await rows()).length === 1, worker)
    expect([flaky, hopeless]).toEqual([3, 4])
    expect((await office.parked()).items).toEqual([
      {
        account,
        id: staged.staged && staged.id,
        destination: null,
        name: 'hopeless',
        failure: { code: 'TypeError', message: 'never, and card [card number]' },
      },
    ])
    expect(
      heard
        .of('job_ended')
        .map(({ job, outcome }) => `${job} ${outcome}`)
        .sort(),
    ).toEqual([
      'flaky again',
      'flaky again',
      'flaky done',
      'hopeless again',
      'hopeless again',
      'hopeless again',
      'hopeless parked',
    ])
    expect(await office.retryParked({ account, id: (await office.parked()).items[0]!.id })).toBe(true)
    await runDry(worker)
    expect(hopeless).toBe(5)
  })

  it('waits as long as it was told to, and longer after each failure', async () => {
    let ran = 0
    const worker = relay(once, {
      jobs: {
        later: async () => {
          ran += 1
          throw new Error('no')
        },
      },
      jobBackoffMinMs: 60_000,
      jobBackoffMaxMs: 60_000,
    })
    await stageOne('later', { runAfterMs: 60_000 })
    await runDry(worker)
    expect(ran).toBe(0)
    await shop.observer.query('UPDATE onlyonce.jobs SET run_at = clock_timestamp()')
    await runDry(worker)
    await runDry(worker)
    expect(ran).toBe(1)
    const waits = await shop.observer.query(
      'SELECT extract(epoch FROM run_at - clock_timestamp())::float8 AS s FROM onlyonce.jobs',
    )
    expect(waits.rows[0].s).toBeGreaterThan(50)
  })

  it('with a key is there once, also when it is done, until it is removed', async () => {
    const ran: string[] = []
    const jobs = { keyed: async ({ id }: Job) => void ran.push(id) }
    const worker = relay(once, { jobs })
    expect(await stageOne('keyed', { key: 'k' })).toMatchObject({ staged: true })
    expect(await stageOne('keyed', { key: 'k' })).toEqual({ staged: false })
    expect(await stageOne('another', { key: 'k' })).toMatchObject({ staged: true })
    const list = await inTransaction(pool, (tx) =>
      office.stage(tx, [
        { account, job: 'keyed', key: 'k' },
        { account, job: 'keyed', key: 'l' },
      ]),
    )
    expect(list.map(({ staged }) => staged)).toEqual([false, true])
    await runDry(worker)
    expect(await stageOne('keyed', { key: 'k' })).toEqual({ staged: false })
    await runDry(worker)
    expect(ran).toHaveLength(2)
    await runDry(relay(once, { jobs, deliveredRetentionMs: 1 }))
    expect(await stageOne('keyed', { key: 'k' })).toMatchObject({ staged: true })
  })

  it('is taken over when its lease is over, and whoever is late changes nothing', async () => {
    const runs: number[] = []
    let finish = () => {}
    const late = new Promise<void>((resolve) => {
      finish = resolve
    })
    const jobs = {
      slow: async ({ attempts }: Job) => {
        runs.push(attempts)
        if (attempts === 1) await late
        else throw new Error('the second fails')
      },
    }
    const first = relay(once, { jobs, jobBackoffMinMs: 60_000, jobBackoffMaxMs: 60_000 })
    const second = relay(shop.open(), { jobs, jobBackoffMinMs: 60_000, jobBackoffMaxMs: 60_000 })
    await stageOne('slow')
    void first.runOnce()
    await waitUntil('it runs', () => runs.length === 1)
    await runDry(second)
    expect(runs).toEqual([1])
    await endLeases()
    await runDry(second)
    expect(runs).toEqual([1, 2])
    finish()
    await first.drain()
    // The first was done, but it was not its own any more.
    expect(await rows()).toMatchObject([{ attempts: 2, done_at: null, error_message: 'the second fails' }])
  })

  it('that takes too long is told so, and runs again; one that kills its process is not begun for ever', async () => {
    const signals: AbortSignal[] = []
    const worker = relay(once, {
      jobs: {
        hangs: async (_, { signal }) => {
          signals.push(signal)
          await new Promise(() => {})
        },
      },
      ...QUICK,
      jobTimeoutMs: 20,
    })
    await stageOne('hangs')
    await runUntil('it ran twice', () => signals.length >= 2, worker)
    expect(signals[0]!.reason.message).toBe('The job took longer than 20 ms.')
    await shop.observer.query(
      'UPDATE onlyonce.jobs SET attempts = 4, run_at = clock_timestamp(), lease_until = NULL',
    )
    const ran = signals.length
    await runUntil('it is parked', async () => (await office.parked()).items.length === 1, worker)
    expect(signals.length).toBe(ran)
    expect((await office.parked()).items[0]!.failure.message).toContain('begun too often')
  })
})

it('a slow job keeps neither other jobs nor events waiting', async () => {
  let finish = () => {}
  const slow = new Promise<void>((resolve) => {
    finish = resolve
  })
  const quick: string[] = []
  const worker = relay(once, {
    jobs: { slow: () => slow, quick: async ({ id }) => void quick.push(id) },
    jobsAtOnce: 2,
  })
  await stageOne('slow')
  await worker.runOnce()
  for (let n = 1; n <= 5; n += 1) {
    await stageOne('quick')
    await waitUntil('it ran', async () => {
      await worker.runOnce()
      return quick.length === n
    })
  }
  finish()
  await worker.drain()
  expect(await rows()).toEqual([])
})

it('relays side by side run each job once', async () => {
  const ran: string[] = []
  const open = () => relay(shop.open(), { jobs: { n: async ({ id }) => void ran.push(id) } })
  const workers = [open(), open(), open()]
  await inTransaction(pool, (tx) =>
    office.stage(
      tx,
      Array.from({ length: 1_000 }, () => ({ account, job: 'n' })),
    ),
  )
  await runUntil('all ran', () => ran.length >= 1_000, ...workers)
  await runDry(...workers)
  expect(ran).toHaveLength(1_000)
  expect(new Set(ran).size).toBe(1_000)
})
