import { beforeAll, describe, expect, test } from 'vitest'
import { logTo } from '../../src/entries/observe.ts'
import { onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { countStuck } from '../../src/store/postgres/sql/stuck.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { catchError, openProxy, openShop, SECRET, type Shop, waitUntil } from './shop.ts'

const HOUR_MS = 3_600_000

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
  // Many finished records, and a few of each unfinished state: two hours old, and new.
  await shop.observer.query(`
    INSERT INTO onlyonce.records
      (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, created_at,
       attempted_at, changed_at, lease_until, expires_at, reply_status, reply_headers, reply_schema, error_code)
    SELECT 'acct_' || n % 7, 'o', gen_random_uuid()::text, state, 1, gen_random_uuid(), 'test', '\\x00', 'default',
      now() - age, now() - age, now() - age,
      CASE WHEN state = 'in_progress' THEN now() END,
      CASE WHEN state IN ('completed', 'retryable') THEN now() + interval '1 day' END,
      CASE WHEN state = 'completed' THEN 200 END, CASE WHEN state = 'completed' THEN '[]' END,
      CASE WHEN state = 'completed' THEN 1 END,
      CASE WHEN state IN ('retryable', 'unknown', 'parked') THEN 'boom' END
    FROM (VALUES ('completed', 20000), ('retryable', 500), ('in_progress', 3), ('unknown', 2), ('parked', 1))
      AS kinds (state, count)
    CROSS JOIN LATERAL generate_series(1, count) AS n
    CROSS JOIN (VALUES (interval '2 hours'), (interval '0')) AS ages (age)`)
  await shop.observer.query('ANALYZE onlyonce.records')
})

describe('stuck records', () => {
  test('are those that nobody has finished for an hour, by state', async () => {
    const stuck = await shop.open().stuck()
    expect(stuck).toEqual({
      in_progress: { count: 3, oldestAgeMs: expect.any(Number) },
      unknown: { count: 2, oldestAgeMs: expect.any(Number) },
      parked: { count: 1, oldestAgeMs: expect.any(Number) },
    })
    expect(stuck.parked.oldestAgeMs).toBeGreaterThanOrEqual(2 * HOUR_MS)
    expect(stuck.parked.oldestAgeMs).toBeLessThan(3 * HOUR_MS)
  })

  test('are counted from the age that one asks for', async () => {
    const once = shop.open({ stuckAfterMs: 3 * HOUR_MS })
    const none = { count: 0, oldestAgeMs: 0 }
    expect(await once.stuck()).toEqual({ in_progress: none, unknown: none, parked: none })
    expect((await once.stuck({ olderThanMs: 1 })).in_progress.count).toBe(6)
    expect(await catchError(once.stuck({ olderThanMs: 0 }))).toMatchObject({ code: 'option_invalid' })
  })

  test('are found by their index, not by reading the table', async () => {
    const { rows } = await shop.observer.query(`EXPLAIN ${countStuck('onlyonce')}`, [HOUR_MS])
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('records_unfinished')
    expect(plan).not.toContain('Seq Scan')
  })
})

describe('the alarm', () => {
  test('tells again and again, and logs at error', async () => {
    const heard = makeRecorder()
    const lines: unknown[] = []
    const logger = {
      info: () => {},
      warn: () => {},
      error: (fields: object) => void lines.push(fields),
    }
    const once = shop.open({ observe: [heard, logTo(logger)], stuckCheckEveryMs: 10 })
    await once.start()
    await waitUntil('it has told three times', () => heard.of('stuck').length >= 3)
    await once.close()
    expect(heard.of('stuck')[0]).toMatchObject({ olderThanMs: HOUR_MS, stuck: { unknown: { count: 2 } } })
    expect(lines[0]).toMatchObject({ signal: 'stuck', in_progress: 3, unknown: 2, parked: 1 })
  })

  test('goes on when the database is away for a while', async () => {
    const heard = makeRecorder()
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool, observe: heard, stuckCheckEveryMs: 5 })
    await once.start()
    proxy.setFault({ kind: 'reset' })
    await waitUntil('it has failed', () => heard.of('store_error').some(({ step }) => step === 'stuck'))
    proxy.setFault(null)
    const before = heard.of('stuck').length
    await waitUntil('it tells again', () => heard.of('stuck').length > before)
  })

  test.each(['stuckAfterMs', 'stuckCheckEveryMs'])('refuses a %s that is none', (name) => {
    expect(() => onlyonce({ store: memory(), secret: SECRET, [name]: 0 })).toThrow(name)
  })
})
