import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { findLongestWaiting } from '../../src/store/postgres/sql/operations.ts'
import { findUnattended } from '../../src/store/postgres/sql/recovery.ts'
import { startWorkers } from '../../src/workers/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { openShop, SECRET, type Shop, settleWithin, waitUntil } from './shop.ts'
import { closing, crash, worldsOf } from './worlds.ts'

let shop: Shop
const WORLDS = worldsOf(() => shop)

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

describe('the background loop', () => {
  test('looks after handlers by itself, and ends with close', async () => {
    const here = WORLDS.postgres!()
    const { call } = await crash(here)
    const quick = LIMITS as { backgroundEveryMs: number }
    const before = quick.backgroundEveryMs
    quick.backgroundEveryMs = 20
    onTestFinished(() => {
      quick.backgroundEveryMs = before
    })
    const once = here.open({ background: true })
    await once.start()
    await waitUntil('it is parked', async () => (await once.explain(call)).state === 'parked')
    await settleWithin(5_000, once.close())
  })

  test('leaves its duties to workers of the same process, and takes them back', async () => {
    const here = WORLDS.memory!()
    const quick = LIMITS as { backgroundEveryMs: number }
    const before = quick.backgroundEveryMs
    quick.backgroundEveryMs = 5
    onTestFinished(() => {
      quick.backgroundEveryMs = before
    })
    const points: string[] = []
    const once = here.open({ background: true, crashPoint: (point) => points.push(point) })
    const idle = { name: 'recoverer', runOnce: async () => ({ done: 0, more: false }) }
    const workers = startWorkers(once, { defaults: false, workers: [idle], everyMs: 1 })
    await once.start()
    const other = here.open({ background: true })
    const { call } = await crash(here)
    await other.start()
    await waitUntil('another process did it', async () => (await other.explain(call)).state === 'parked')
    expect(points).not.toContain('recover.find.before')
    await workers.stop()
    await waitUntil('it goes on', () => points.includes('recover.find.before'))
  })

  test('finds what it looks for by an index', async () => {
    const { rows } = await shop.observer.query(
      `SELECT indexdef FROM pg_indexes WHERE schemaname = 'onlyonce' AND indexname IN ('records_unfinished', 'records_due')`,
    )
    expect(rows).toHaveLength(2)
    await shop.observer.query(
      `INSERT INTO onlyonce.records (account, operation, key, state, fence, attempt_id, owner, attempted_at, fingerprint,
         fingerprint_key_id, created_at, changed_at, expires_at, reply_status, reply_headers, reply_schema, kind)
       SELECT 'many', 'o', i::text, 'completed', 1, gen_random_uuid(), 'o', now(), '', 'k', now(), now(),
         now() + interval '1 day', 200, '[]', 1, 'h' FROM generate_series(1, 20000) AS i`,
    )
    await shop.observer.query('ANALYZE onlyonce.records')
    const text = findUnattended('onlyonce')
      .replaceAll('$1', '30000')
      .replaceAll('$2', `'{}'`)
      .replaceAll('$3', '3600000')
      .replaceAll('$4', '20')
    const plan = await shop.observer.query(`EXPLAIN ${text}`)
    const lines = plan.rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(lines).not.toContain('Seq Scan')
    expect(lines).toContain('records_unfinished')
    expect(lines).toContain('records_due')
    const waiting = findLongestWaiting('onlyonce').replaceAll('$1', '900000').replaceAll('$2', `'{}'`)
    const other = await shop.observer.query(`EXPLAIN ${waiting}`)
    const otherLines = other.rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(otherLines).not.toContain('Seq Scan')
    expect(otherLines).toContain('records_unfinished')
    expect(otherLines).toContain('records_due')
  })

  test('tells a role without the right to delete once, and goes on without pruning', async () => {
    const here = WORLDS.postgres!()
    const heard = makeRecorder()
    const quick = LIMITS as { reapEveryMs: number }
    const before = quick.reapEveryMs
    quick.reapEveryMs = 5
    onTestFinished(() => {
      quick.reapEveryMs = before
    })
    const denied = Object.assign(new Error('permission denied for table records'), {
      code: '42501',
      severity: 'ERROR',
    })
    const store = memory()
    let tries = 0
    store.reap = () => {
      tries += 1
      return Promise.reject(denied)
    }
    const once = closing(onlyonce({ secret: SECRET, store: store as never, observe: heard }))
    await once.start()
    await waitUntil('it is told', () => heard.of('worker_failed').length > 0)
    expect(heard.of('worker_failed')).toMatchObject([{ worker: 'background.reaper', code: '42501' }])
    const other = here.open({ background: true })
    await other.start()
    expect(tries).toBe(1)
  })
})
