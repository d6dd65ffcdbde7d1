import { beforeAll, describe, expect, test } from 'vitest'
import { type ListOptions, operator, type RecordSummary } from '../../src/operator/index.ts'
import { listFailed, listOfKey, listUnfinished } from '../../src/store/postgres/sql/decisions.ts'
import { catchError, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
  // Ten of each unfinished state in three accounts, some of them of the very same moment, among many finished ones.
  await shop.observer.query(`
    INSERT INTO onlyonce.records
      (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, created_at,
       attempted_at, changed_at, lease_until, expires_at, reply_status, reply_headers, reply_body, reply_schema,
       error_code, error_message, version, recovery_point, looks, look_at, waits_for)
    SELECT 'acct_' || n % 3, 'op.' || n % 2, 'key-' || state || '-' || n, state, 1, gen_random_uuid(), 'test', '\\x00',
      'default', at, at, at,
      CASE WHEN state = 'in_progress' THEN at END,
      CASE WHEN state IN ('completed', 'retryable') THEN now() + interval '1 day' END,
      CASE WHEN state = 'completed' THEN 200 END, CASE WHEN state = 'completed' THEN '[]' END,
      CASE WHEN state = 'completed' THEN '\\x22736563726574'::bytea END, CASE WHEN state = 'completed' THEN 1 END,
      CASE WHEN state IN ('retryable', 'unknown', 'parked') THEN 'boom' END, 'it broke',
      CASE WHEN state = 'unknown' THEN '2' END, CASE WHEN state = 'unknown' THEN 'charged' END,
      CASE WHEN state = 'unknown' THEN 3 END, CASE WHEN state = 'unknown' THEN now() END,
      CASE WHEN state = 'unknown' THEN 'call-' || n END
    FROM (VALUES ('completed', 3000), ('retryable', 30), ('in_progress', 10), ('unknown', 10), ('parked', 10))
      AS kinds (state, count)
    CROSS JOIN LATERAL generate_series(1, count) AS n
    CROSS JOIN LATERAL (SELECT date_trunc('hour', now()) - (n / 4) * interval '1 hour' + interval '1 microsecond') AS t (at)`)
  await shop.observer.query('ANALYZE onlyonce.records')
})

async function all(options: ListOptions): Promise<RecordSummary[]> {
  const desk = operator(shop.open())
  const found: RecordSummary[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await desk.list({ ...options, ...(cursor === undefined ? {} : { cursor }) })
    expect(page.items.length).toBeLessThanOrEqual(options.limit ?? 50)
    found.push(...page.items)
    if (page.cursor === null) return found
    cursor = page.cursor
  }
}

const keysOf = (records: readonly RecordSummary[]) => records.map(({ key }) => key)

describe('the list', () => {
  test('is of all that is unfinished, of all accounts, the oldest first', async () => {
    const found = await all({})
    expect(found).toHaveLength(30)
    expect(new Set(found.map(({ state }) => state))).toEqual(new Set(['in_progress', 'unknown', 'parked']))
    const times = found.map(({ attemptedAt }) => attemptedAt)
    expect(times).toEqual([...times].sort((a, b) => a - b))
  })

  test.each([1, 3, 7, 29, 30, 31])('shows each record once, in pages of %i', async (limit) => {
    const keys = keysOf(await all({ limit }))
    expect(keys).toEqual(keysOf(await all({ limit: 500 })))
    expect(new Set(keys).size).toBe(30)
  })

  test('tells what is known of an operation, and neither input nor reply', async () => {
    const { items: records } = await operator(shop.open()).list({ states: ['unknown'], limit: 1 })
    expect(records[0]).toMatchObject({
      state: 'unknown',
      failure: { code: 'boom', message: 'it broke' },
      version: '2',
      recoveryPoint: 'charged',
      looks: 3,
      waitsFor: expect.stringMatching(/^call-/),
    })
    const completed = await operator(shop.open()).list({ states: ['completed'], account: 'acct_1', limit: 1 })
    expect(JSON.stringify(completed)).not.toContain('secret')
    const shown = await operator(shop.open()).show(completed.items[0]!)
    expect(shown.reply).toBe(null)
    expect(JSON.stringify(shown)).not.toContain('secret')
  })

  test('is narrowed by account, operation, state and age, and shows no other account', async () => {
    const ofAccount = await all({ account: 'acct_1' })
    expect(new Set(ofAccount.map(({ account }) => account))).toEqual(new Set(['acct_1']))
    expect(ofAccount.length).toBeLessThan(30)
    expect(await all({ account: 'acct_9' })).toEqual([])
    expect(new Set((await all({ operation: 'op.1' })).map(({ operation }) => operation))).toEqual(
      new Set(['op.1']),
    )
    expect(await all({ states: ['parked'] })).toHaveLength(10)
    expect(await all({ states: ['retryable', 'completed'], account: 'acct_0', limit: 500 })).toHaveLength(
      1010,
    )
    const old = await all({ olderThanMs: 2 * 3_600_000 })
    expect(old.length).toBeGreaterThan(0)
    expect(old.length).toBeLessThan(30)
  })

  test('locks nothing, and reads no finished records', async () => {
    const values = [['unknown', 'parked'], null, null, 0, null, null, null, null, 50]
    const { rows } = await shop.observer.query(`EXPLAIN ${listUnfinished('onlyonce')}`, values)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).toContain('records_unfinished')
    expect(plan).not.toContain('LockRows')
  })

  test('of failed handlers reads an index of failures alone', async () => {
    const values = [['completed'], null, null, 0, null, null, null, null, 50]
    const { rows } = await shop.observer.query(`EXPLAIN ${listFailed('onlyonce')}`, values)
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('records_failed')
  })

  test('of one key asks an index once for each operation, however many records the account has', async () => {
    const values = [['completed'], 'acct_1', null, 0, null, null, null, null, 50, 'key-completed-1', 10_000]
    const text = `EXPLAIN (ANALYZE, TIMING OFF) ${listOfKey('onlyonce')}`
    const { rows } = await shop.observer.query(text, values)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    expect(plan).not.toContain('Seq Scan')
    // 1 for the first name, 1 for each name behind it, 1 for the key under each: never one for each record.
    const read = [...plan.matchAll(/Index.* Scan .*actual rows=([\d.]+) loops=(\d+)/g)]
    const rowsRead = read.reduce((sum, [, count, loops]) => sum + Number(count) * Number(loops), 0)
    expect(read.length).toBeGreaterThanOrEqual(3)
    expect(rowsRead).toBeLessThan(10)
    expect(
      (await operator(shop.open()).list({ account: 'acct_1', key: 'key-completed-1' })).items,
    ).toHaveLength(1)
  })

  test.each([
    [{ key: 'key-completed-1' }, 'Name the account'],
    [{ failed: 'yes' }, 'failed'],
    [{ states: ['completed'] }, 'Name an account'],
    [{ states: ['lost'] }, 'states'],
    [{ states: [] }, 'states'],
    [{ limit: 0 }, 'limit'],
    [{ limit: 501 }, 'limit'],
    [{ olderThanMs: -1 }, 'olderThanMs'],
    [{ cursor: 'nonsense' }, 'cursor'],
    [{ cursor: Buffer.from('["1 OR 1=1","a","b","c"]').toString('base64url') }, 'cursor'],
    [{ page: 2 }, 'no option page'],
    [{ account: '' }, 'account'],
  ])('refuses %j', async (options, why) => {
    const error = await catchError(operator(shop.open()).list(options as never))
    expect(error.message).toContain(why)
  })
})
