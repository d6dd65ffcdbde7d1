import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import { onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { findReapable } from '../../src/store/postgres/sql/reap.ts'
import { reaper, startWorkers } from '../../src/workers/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { beginOutside, catchError, makeCall, openShop, SECRET, type Shop, waitUntil } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

type Ages = { readonly changed?: string; readonly expired?: string }

/** Puts records there in every state, past their retention where they have one, and gives back their keys. */
async function fill(state: string, count: number, { changed = '2 days', expired = '1 day' }: Ages = {}) {
  const { rows } = await shop.observer.query(
    `INSERT INTO onlyonce.records
       (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, created_at,
        attempted_at, changed_at, lease_until, expires_at, reply_status, reply_headers, reply_body, reply_schema,
        error_code, input, progress, points, recovery_point, version)
     SELECT 'acct_' || n % 7, 'reaped', gen_random_uuid()::text, $1, 1, gen_random_uuid(), 'test', '\\x00', 'default',
       now() - $3::interval, now() - $3::interval, now() - $3::interval,
       CASE WHEN $1 = 'in_progress' THEN now() - $3::interval END,
       CASE WHEN $1 IN ('completed', 'retryable') THEN now() - $4::interval END,
       CASE WHEN $1 = 'completed' THEN 200 END, CASE WHEN $1 = 'completed' THEN '[]' END,
       CASE WHEN $1 = 'completed' THEN '\\x7b7d'::bytea END, CASE WHEN $1 = 'completed' THEN 1 END,
       CASE WHEN $1 IN ('retryable', 'unknown', 'parked') THEN 'boom' END,
       '\\x01', '\\x02', 1, 'charged', '2'
     FROM generate_series(1, $2) AS n
     RETURNING account, operation, key`,
    [state, count, changed, expired],
  )
  return rows as { account: string; operation: string; key: string }[]
}

async function statesOf(ids: readonly { key: string }[]): Promise<Record<string, number>> {
  const { rows } = await shop.observer.query(
    `SELECT state, count(*)::int AS count FROM onlyonce.records WHERE key = ANY($1) GROUP BY state`,
    [ids.map(({ key }) => key)],
  )
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]))
}

async function drain(worker: ReturnType<typeof reaper>): Promise<number> {
  let done = 0
  for (let ran = await worker.runOnce(); ; ran = await worker.runOnce()) {
    done += ran.done
    if (!ran.more) return done
  }
}

describe('the reaper', () => {
  test('deletes finished records past their retention, and tells how many', async () => {
    const heard = makeRecorder()
    const ids = [...(await fill('completed', 25)), ...(await fill('retryable', 5))]
    const worker = reaper(shop.open({ observe: heard }), { mode: 'delete', batchMax: 10 })
    expect(await worker.runOnce()).toEqual({ done: 10, more: true })
    expect(await drain(worker)).toBe(20)
    expect(await statesOf(ids)).toEqual({})
    const told = heard.of('ttl_pruned').map(({ count }) => count)
    expect(told.reduce((a, b) => a + b, 0)).toBe(30)
  })

  test('never removes what is unfinished, whatever its age', async () => {
    const ids = [
      ...(await fill('in_progress', 3)),
      ...(await fill('unknown', 3)),
      ...(await fill('parked', 3)),
    ]
    for (const mode of ['delete', 'expire'] as const) await drain(reaper(shop.open(), { mode }))
    expect(await statesOf(ids)).toEqual({ in_progress: 3, parked: 3, unknown: 3 })
  })

  test('keeps what changed within the last minutes, because it may be the verdict on a lost COMMIT', async () => {
    const young = { changed: '9 minutes', expired: '8 minutes' }
    const ids = [...(await fill('retryable', 2, young)), ...(await fill('completed', 2, young))]
    await drain(reaper(shop.open(), { mode: 'delete' }))
    expect(await statesOf(ids)).toEqual({ completed: 2, retryable: 2 })
    expect(LIMITS.finishedKeptMinMs).toBeGreaterThan(LIMITS.transactionMaxMs + LIMITS.settleMaxMs)
    // Where transactions may take longer than that, so does the reaper.
    const patient = { settleMaxMs: 1_800_000, transactionMaxMs: 1_800_000 }
    const older = await fill('retryable', 2, { changed: '50 minutes', expired: '40 minutes' })
    await drain(reaper(shop.open({ store: patient }), { mode: 'delete' }))
    expect(await statesOf(older)).toEqual({ retryable: 2 })
    await drain(reaper(shop.open(), { mode: 'delete' }))
    expect(await statesOf(older)).toEqual({})
  })

  test('may keep the rows and clear what they say; the key is new then', async () => {
    const ids = [...(await fill('completed', 2)), ...(await fill('retryable', 2))]
    const once = shop.open()
    await drain(reaper(once, { mode: 'expire' }))
    expect(await statesOf(ids)).toEqual({ expired: 4 })
    const { rows } = await shop.observer.query(
      `SELECT DISTINCT reply_status, reply_headers, reply_body, reply_schema, error_code, error_message, input, progress,
         points, recovery_point, version FROM onlyonce.records WHERE state = 'expired' AND key = ANY($1)`,
      [ids.map(({ key }) => key)],
    )
    expect(rows).toHaveLength(1)
    expect(Object.values(rows[0]).filter((value) => value !== null)).toEqual([])
    expect(await once.execute({ ...ids[0]!, input: 'another' }, async () => 1)).toEqual({
      outcome: 'executed',
      value: 1,
    })
    expect(await drain(reaper(once, { mode: 'expire' }))).toBe(0)
  })

  test('leaves a record to the retry that takes it in the same moment', async () => {
    const [taken, ...others] = await fill('retryable', 40)
    const client = await beginOutside(shop)
    await client.query(
      `UPDATE onlyonce.records SET state = 'in_progress', fence = fence + 1, expires_at = NULL, error_code = NULL,
         lease_until = now() + interval '1 hour' WHERE key = $1`,
      [taken!.key],
    )
    const worker = reaper(shop.open(), { mode: 'delete' })
    expect((await worker.runOnce()).done).toBe(39)
    expect(await statesOf(others)).toEqual({})
    await client.query('COMMIT')
    expect(await drain(worker)).toBe(0)
    expect(await statesOf([taken!])).toEqual({ in_progress: 1 })
  })

  test('judges again in the moment of deleting, by fence, state and expiry', async () => {
    const ids = await fill('retryable', 4)
    const [refenced, renewed, taken, left] = ids.map(({ key }) => key)
    // The deletion has its snapshot, and waits before it takes the first row.
    await shop.observer.query(`
      CREATE TABLE gate (opened int);
      CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        WHILE NOT EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.005); END LOOP;
        RETURN NULL;
      END $$;
      CREATE TRIGGER wait_at_gate BEFORE DELETE ON onlyonce.records
        FOR EACH STATEMENT EXECUTE FUNCTION wait_at_gate()`)
    const running = reaper(shop.open(), { mode: 'delete' }).runOnce()
    await waitUntil('it waits at the gate', async () => {
      const { rows } = await shop.observer.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
      )
      return rows.length > 0
    })
    const change = (key: string | undefined, what: string) =>
      shop.observer.query(`UPDATE onlyonce.records SET ${what} WHERE key = $1`, [key])
    await change(refenced, 'fence = fence + 1')
    await change(renewed, `expires_at = now() + interval '1 day'`)
    await change(taken, `state = 'unknown', expires_at = NULL`)
    await shop.observer.query('INSERT INTO gate VALUES (1)')
    expect((await running).done).toBe(1)
    await shop.observer.query('DROP TRIGGER wait_at_gate ON onlyonce.records')
    const { rows } = await shop.observer.query('SELECT key FROM onlyonce.records WHERE key = ANY($1)', [
      [refenced, renewed, taken, left],
    ])
    expect(rows.map(({ key }) => key).sort()).toEqual([refenced, renewed, taken].sort())
    await change(refenced, `expires_at = now() + interval '1 day'`)
  })

  test('shares the work with any number of others, and removes nothing twice', async () => {
    const heard = makeRecorder()
    const ids = await fill('completed', 500)
    const workers = Array.from({ length: 4 }, () =>
      reaper(shop.open({ observe: heard, poolOptions: { max: 3 } }), { mode: 'delete', batchMax: 50 }),
    )
    const done = await Promise.all(workers.map(drain))
    for (const worker of workers) await drain(worker)
    expect(await statesOf(ids)).toEqual({})
    const told = heard.of('ttl_pruned').reduce((sum, { count }) => sum + count, 0)
    expect(told).toBe(500)
    expect(done.every((count) => count <= 500)).toBe(true)
  })

  test('halves its batch when the database is too slow, and takes more again later', async () => {
    await fill('completed', 60)
    // A statement with more than 20 rows never ends; one with 20 is quick.
    await shop.observer.query(`
      CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$
      DECLARE
        rows int := coalesce(nullif(current_setting('test.rows', true), ''), '0')::int + 1;
      BEGIN
        PERFORM set_config('test.rows', rows::text, true);
        IF rows > 20 THEN PERFORM pg_sleep(3600); END IF;
        RETURN OLD;
      END $$;
      CREATE TRIGGER dawdle BEFORE DELETE ON onlyonce.records FOR EACH ROW EXECUTE FUNCTION dawdle()`)
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const worker = reaper(once, { mode: 'delete', batchMax: 40 })
    try {
      expect(await worker.runOnce()).toEqual({ done: 0, more: true })
      expect(await worker.runOnce()).toEqual({ done: 20, more: true })
      expect(heard.of('store_error')).toMatchObject([{ step: 'reap', code: 'store_unavailable' }])
    } finally {
      await shop.observer.query('DROP TRIGGER dawdle ON onlyonce.records; DROP FUNCTION dawdle')
    }
    expect((await worker.runOnce()).done).toBe(22)
    expect(await drain(worker)).toBe(18)
  })

  test('finds what is due by its index', async () => {
    await fill('completed', 5_000, { changed: '1 hour', expired: '-1 day' })
    await shop.observer.query('ANALYZE onlyonce.records')
    const { rows } = await shop.observer.query(`EXPLAIN ${findReapable('onlyonce')}`, [1, 100])
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('records_reapable')
    expect(plan).not.toContain('Seq Scan')
  })

  test('works in the loop, and ends with what it works for', async () => {
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    startWorkers(once, { defaults: false, workers: [reaper(once, { mode: 'delete', everyMs: 5 })] })
    const call = makeCall()
    await once.execute({ ...call, retentionMs: 1 }, async () => 1)
    const [due] = await fill('completed', 1)
    await waitUntil('the due one is gone', async () => (await statesOf([due!])).completed === undefined)
    expect(await statesOf([call])).toEqual({ completed: 1 })
    await once.close()
    expect(heard.of('worker_failed')).toEqual([])
    expect(await catchError(reaper(once, { mode: 'delete' }).runOnce())).toMatchObject({ code: 'closed' })
  })

  test('goes by the clock of the memory store too', async () => {
    let now = 1_000_000
    const once = onlyonce({ store: memory({ clock: () => now }), secret: SECRET })
    const call = { ...makeCall(), retentionMs: 5 }
    await once.execute(call, async () => 1)
    const worker = reaper(once, { mode: 'delete' })
    now += LIMITS.finishedKeptMinMs - 1
    expect(await worker.runOnce()).toEqual({ done: 0, more: false })
    now += 1
    expect(await worker.runOnce()).toEqual({ done: 1, more: false })
    expect((await once.explain(call)).state).toBe('none')
  })

  test.each([
    [{}, 'mode'],
    [{ mode: 'purge' }, 'mode'],
    [{ mode: 'delete', batchMax: 0 }, 'batchMax'],
    [{ mode: 'delete', everyMs: 0 }, 'everyMs'],
    [{ mode: 'delete', keptMinMs: 1 }, 'no option keptMinMs'],
  ])('refuses %j', (options, why) => {
    const once = onlyonce({ store: memory(), secret: SECRET })
    expect(() => reaper(once, options as never)).toThrow(why)
  })
})
