/** What is kept: sealed anew under another key, or erased for good. */
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { keyRing } from '../../src/core/ring.ts'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { operation } from '../../src/index.ts'
import { resealAll } from '../../src/operator/reseal.ts'
import { erase } from '../../src/record/index.ts'
import { Seal } from '../../src/seal/index.ts'
import { erasePage } from '../../src/store/postgres/erasure.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { putSealed, readSealedPage } from '../../src/store/postgres/rotation.ts'
import { evidencePlace } from '../../src/store/sealed-operations.ts'
import { webhookSecretPlace } from '../../src/store/sealed-webhooks.ts'
import { webhooks } from '../../src/webhooks/index.ts'
import { addEvidence, reaper } from '../../src/workers/index.ts'
import {
  beginOutside,
  type Call,
  catchError,
  makeCall,
  openShop,
  SECRET,
  type Shop,
} from '../contract/shop.ts'
import { POOLER } from '../setup/pooler.ts'
import { type RunOptions, run } from './under-test.ts'

const A = 'the-first-encryption-key-0123456789-0123'
const B = 'the-second-encryption-key-0123456789-012'
const OLD = { current: 'a', keys: { a: A } }
const BOTH = { current: 'b', keys: { a: A, b: B } }
const NEW = { current: 'b', keys: { b: B } }
const SIGNED = ['--actor', 'ann@example.com', '--reason', 'request 4711']
const CANARY = 'the-text-that-must-go'

let shop: Shop

// Several pages of everything.
Object.assign(LIMITS, { resealPageMax: 2, erasePageMax: 2 })

const cli = (args: readonly string[], options: RunOptions = {}) =>
  run([...args, '--pooler', POOLER], {
    ...options,
    env: { DATABASE_URL: shop.database.url, ...options.env },
  })

async function rowsOf(sql: string, values: unknown[] = []) {
  return (await shop.observer.query(sql, values)).rows
}

/** An operation that stays in doubt behind a durable step. */
const stays = operation('stays.in-doubt', async (op, input: unknown) => {
  await op.transaction('noted', async () => ({ note: CANARY, input }))
  return await op.call('asked', {
    call: async () => {
      throw new Error('the answer was lost')
    },
    find: async () => ({ status: 'pending' as const }),
  })
})

describe('rotate', () => {
  beforeEach(async () => {
    shop = await openShop()
  })

  const rotate = (ring: unknown, ...args: string[]) =>
    cli(['rotate', '--json', ...args], { env: { ONLYONCE_ENCRYPTION: JSON.stringify(ring) } })

  /** One of each kind that is sealed, under the key a. */
  async function sealAll() {
    const old = shop.open({ encryption: OLD })
    const completed = makeCall()
    await old.transaction(completed, async () => ({ paid: CANARY }))
    const running = { account: 'acct_1', key: randomUUID(), input: { note: CANARY } }
    expect((await old.run(stays, running)).outcome).toBe('unknown')
    const evidence = `call-${randomUUID()}`
    await addEvidence(old, { account: 'acct_1', key: evidence, result: { id: CANARY } })
    const hooks = webhooks(old, { allowPrivate: true })
    const url = `http://127.0.0.1:9/${randomUUID()}`
    const { endpoint, secret } = await hooks.endpoints.create({ account: 'acct_1', url })
    // The service is deployed with the new key as its current one.
    await shop.open({ encryption: BOTH }).start()
    return { completed, running, evidence, endpoint, secret }
  }

  const KEYS = `SELECT DISTINCT key FROM (
    SELECT reply_key_id AS key FROM onlyonce.records WHERE reply_key_id IS NOT NULL
    UNION ALL SELECT input_key_id FROM onlyonce.records WHERE input_key_id IS NOT NULL
    UNION ALL SELECT progress_key_id FROM onlyonce.records WHERE progress_key_id IS NOT NULL
    UNION ALL SELECT key_id FROM onlyonce.evidence UNION ALL SELECT key_id FROM onlyonce.webhook_secrets) AS k ORDER BY key`

  test('tells what needs an old key, seals it anew, and then the old key can go', async () => {
    const { completed, running, evidence, endpoint, secret } = await sealAll()
    const before = await rotate(BOTH)
    expect(before.code).toBe(1)
    const needed = before.json.keys.filter((key: { key_id: string }) => key.key_id === 'a')
    expect(needed.map((key: { what: string }) => key.what).sort()).toEqual(
      ['evidence', 'inputs', 'replies', 'steps', 'webhook secrets'].sort(),
    )
    expect(needed.every((key: { current: boolean }) => key.current === false)).toBe(true)
    expect(await catchError(shop.open({ encryption: NEW }).start())).toMatchObject({
      code: 'key_ring_incomplete',
    })

    const done = await rotate(BOTH, '--reseal', '--yes')
    expect(done).toMatchObject({
      code: 0,
      json: { resealed: { resealed: 5, owned: 0, changed: 0, broken: 0, missing: {} } },
    })
    expect(await rowsOf(KEYS)).toEqual([{ key: 'b' }])
    expect(await rotate(BOTH, '--reseal', '--yes')).toMatchObject({
      code: 0,
      json: { resealed: { resealed: 0 } },
    })

    const young = shop.open({ encryption: NEW })
    expect(await young.transaction(completed, async () => 'ran again')).toEqual({
      outcome: 'replayed',
      value: { paid: CANARY },
    })
    const id = ['acct_1', 'stays.in-doubt', running.key]
    const shown = await cli(['show', ...id, '--results', '--json'], {
      env: { ONLYONCE_ENCRYPTION: JSON.stringify(NEW) },
    })
    expect(shown.json.results.steps).toMatchObject([
      { name: 'noted', result: { note: CANARY, input: { note: CANARY } } },
    ])
    const seal = new Seal(keyRing(NEW, 'reply'))
    const [told] = await rowsOf('SELECT result FROM onlyonce.evidence WHERE call_key = $1', [evidence])
    const opened = seal.open(evidencePlace('acct_1', evidence), { bytes: told.result, sealedBy: 'b' })
    expect(JSON.parse(String(opened))).toEqual({ id: CANARY })
    const [signs] = await rowsOf('SELECT secret AS bytes, key_id FROM onlyonce.webhook_secrets')
    const place = webhookSecretPlace('acct_1', endpoint.id)
    expect(secret).toContain(seal.open(place, { bytes: signs.bytes, sealedBy: 'b' }).toString('base64'))
  })

  test('two at once seal everything once, and what is plain only where it is asked for', async () => {
    const plain = makeCall()
    await shop.open().transaction(plain, async () => 'in the clear')
    await sealAll()
    const both = await Promise.all([rotate(BOTH, '--reseal', '--yes'), rotate(BOTH, '--reseal', '--yes')])
    const counts = both.map(({ json }) => json.resealed.resealed)
    expect(counts[0] + counts[1]).toBe(5)
    const keyOf = async () =>
      (await rowsOf('SELECT reply_key_id FROM onlyonce.records WHERE key = $1', [plain.key]))[0]
    expect(await keyOf()).toEqual({ reply_key_id: null })
    await rotate(BOTH, '--reseal', '--plain', '--yes')
    expect(await keyOf()).toEqual({ reply_key_id: 'b' })
    expect(await shop.open({ encryption: NEW }).transaction(plain, async () => 1)).toMatchObject({
      value: 'in the clear',
    })
  })

  test('a seal that is broken, and a key that is missing, are told and harm no other', async () => {
    const { completed, running } = await sealAll()
    await rowsOf(`UPDATE onlyonce.records SET reply_body = reply_body || 'x' WHERE key = $1`, [completed.key])
    const broken = await rotate(BOTH, '--reseal', '--yes')
    expect(broken).toMatchObject({ code: 1, json: { resealed: { resealed: 4, broken: 1 } } })
    expect(broken.json.resealed.broken_names[0]).toContain(completed.key)
    expect(await rotate(NEW, '--reseal', '--yes')).toMatchObject({
      code: 1,
      json: { resealed: { missing: { a: 1 } } },
    })
    await rowsOf('DELETE FROM onlyonce.records WHERE key = ANY ($1)', [[completed.key, running.key]])
  })

  test('is refused with a key that no process of the service has started with', async () => {
    await sealAll()
    const ring = { current: 'c', keys: { a: A, b: B, c: `${B}, and another` } }
    const refused = await rotate(ring, '--reseal', '--yes')
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('No process of the service')])
    expect((await cli(['rotate', '--reseal', '--yes'])).stderr).toContain('ONLYONCE_ENCRYPTION is not set')
    const piped = await rotate(BOTH, '--reseal')
    expect([piped.code, piped.stderr]).toEqual([2, expect.stringContaining('give --yes')])
  })

  test('puts nothing in the place of bytes that have changed, that an owner works on, or that a transaction holds', async () => {
    const { completed, running } = await sealAll()
    const pool = shop.database.pool({ max: 2 })
    const request = {
      schema: 'onlyonce',
      table: 'records',
      after: null,
      currentId: 'b',
      plain: false,
    } as const
    const { items } = await readSealedPage(pool, request)
    const replies = items.filter(({ shelf }) => shelf === 'replies')
    expect(replies.map(({ item }) => item.name)).toEqual([`acct_1 transfers.create ${completed.key}`])
    const sealed = replies.map(({ item }) => ({ item, bytes: Buffer.from('late') }))
    await rowsOf(`UPDATE onlyonce.records SET reply_body = reply_body || 'x' WHERE key = $1`, [completed.key])
    expect(await putSealed(pool, 'onlyonce', 'replies', 'b', sealed)).toBe(0)
    await rowsOf(
      `UPDATE onlyonce.records SET reply_body = substr(reply_body, 1, length(reply_body) - 1) WHERE key = $1`,
      [completed.key],
    )
    const holder = await beginOutside(shop)
    await holder.query('SELECT FROM onlyonce.records WHERE key = $1 FOR UPDATE', [completed.key])
    await rowsOf(
      `UPDATE onlyonce.records SET state = 'in_progress', lease_until = now() + interval '1 hour',
      look_at = NULL, error_code = NULL, error_message = NULL WHERE key = $1`,
      [running.key],
    )
    const done = await rotate(BOTH, '--reseal', '--yes')
    expect(done.json.resealed).toMatchObject({ resealed: 2, owned: 1, changed: 1 })
    await holder.query('ROLLBACK')
    await rowsOf(`UPDATE onlyonce.records SET lease_until = now() WHERE key = $1`, [running.key])
    expect((await rotate(BOTH, '--reseal', '--yes')).json.resealed).toMatchObject({
      resealed: 3,
      owned: 0,
      changed: 0,
    })
  })

  test('ends behind the page that it is at when it is told to', async () => {
    await sealAll()
    const stopped = new AbortController()
    stopped.abort('SIGINT')
    const pool = shop.database.pool({ max: 1 })
    const request = {
      pool,
      schema: 'onlyonce',
      ring: keyRing(BOTH, 'reply'),
      plain: false,
      onProgress: () => {},
    }
    expect(await resealAll({ ...request, signal: stopped.signal })).toMatchObject({ resealed: 0 })
    expect(await resealAll({ ...request, signal: new AbortController().signal })).toMatchObject({
      resealed: 5,
    })
  })
})

describe('erase', () => {
  beforeAll(async () => {
    shop = await openShop()
  })

  const account = () => `acct_${randomUUID()}`
  const eraseOf = (name: string, ...args: string[]) =>
    cli(['erase', '--account', name, ...SIGNED, '--yes', '--json', ...args])
  const rowOf = async ({ account, key }: Pick<Call, 'account' | 'key'>) =>
    (await rowsOf('SELECT * FROM onlyonce.records WHERE account = $1 AND key = $2', [account, key]))[0]

  /** Whether a text is anywhere in the tables of the library; the audit is never erased. */
  async function isAnywhere(text: string): Promise<boolean> {
    const tables = await rowsOf(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'onlyonce' AND tablename <> 'audit'`,
    )
    for (const { tablename } of tables) {
      const found = await rowsOf(
        `SELECT FROM onlyonce.${tablename} AS t
        WHERE t::text LIKE '%' || $1 || '%' OR t::text LIKE '%' || encode(convert_to($1, 'UTF8'), 'hex') || '%'`,
        [text],
      )
      if (found.length > 0) return true
    }
    return false
  }

  test('no erased key runs again, in any state that it had, with any body; nothing of it is left', async () => {
    const name = account()
    const text = `${CANARY}-${randomUUID()}`
    const once = shop.open()
    const done = makeCall({ account: name, input: { text } })
    const failed = makeCall({ account: name })
    const again = makeCall({ account: name })
    const past = makeCall({ account: name })
    await once.transaction(done, async () => ({ text }))
    await catchError(once.execute(failed, () => Promise.reject(new Error(text))))
    await catchError(once.transaction(again, () => Promise.reject(new Error(text))))
    await catchError(once.transaction(again, () => Promise.reject(new Error(text))))
    await once.transaction(past, async () => text)
    await rowsOf(
      `UPDATE onlyonce.records SET expires_at = now() - interval '1 day', changed_at = now() - interval '1 day' WHERE key = $1`,
      [past.key],
    )
    await reaper(once, { mode: 'expire' }).runOnce()
    await addEvidence(once, { account: name, key: 'call', result: { text } })
    const hooks = webhooks(once, { allowPrivate: true })
    await hooks.endpoints.create({ account: name, url: `http://127.0.0.1:9/${text}` })
    expect(await isAnywhere(text)).toBe(true)

    expect(await cli(['erase', '--account', name, '--dry-run', '--json'])).toMatchObject({
      code: 0,
      json: { erasable: 4, unknown: 0 },
    })
    const before = (await rowOf(done))!
    expect(await eraseOf(name)).toMatchObject({
      code: 0,
      json: { erased: 4, left: { erased: 4, erasable: 0 }, beside: { evidence: 0, webhook_endpoints: 0 } },
    })
    expect(await isAnywhere(text)).toBe(false)
    expect(await rowsOf('SELECT FROM onlyonce.attempts WHERE account = $1', [name])).toEqual([])
    expect(await rowOf(done)).toMatchObject({
      state: 'completed',
      attempt_id: before.attempt_id,
      fence: before.fence,
      fingerprint_key_id: '',
    })

    // In another process: this one may remember for a moment what it has replayed.
    const other = shop.open()
    let runs = 0
    const work = async () => {
      runs += 1
      return 'ran'
    }
    for (const call of [done, failed, again, past, { ...done, input: 'another' }]) {
      const told = { code: 'key_erased', status: 410, retryable: false, executed: 'unknown' }
      expect(await catchError(other.transaction(call, work))).toMatchObject(told)
      expect(await catchError(other.execute(call, work))).toMatchObject(told)
      expect(
        await catchError(
          other.run(operation(call.operation, work), { account: name, key: call.key, input: call.input }),
        ),
      ).toMatchObject(told)
    }
    const client = await beginOutside(shop)
    expect(await catchError(other.within(client, done, work))).toMatchObject({ code: 'key_erased' })
    expect(runs).toBe(0)
    expect(await eraseOf(name)).toMatchObject({ code: 0, json: { erased: 0, left: { erased: 4 } } })
  })

  test('over HTTP it is 410 and a problem; the story of the key tells it, and who it was', async () => {
    const [name, key] = [account(), randomUUID()]
    const operationName = 'orders.http'
    let runs = 0
    const routeOf = () =>
      idempotent(shop.open(), { account: () => name, operation: operationName }, () => {
        runs += 1
        return Response.json({ runs })
      })
    const send = (route: ReturnType<typeof routeOf>, body: string) =>
      route(
        new Request('http://shop.example/orders', {
          method: 'POST',
          headers: { 'idempotency-key': key, 'content-type': 'application/json' },
          body,
        }),
      )
    expect((await send(routeOf(), '{"amount":5}')).status).toBe(200)
    await eraseOf(name)
    for (const body of ['{"amount":5}', '{"amount":6}']) {
      const response = await send(routeOf(), body)
      expect([response.status, response.headers.get('idempotent-replayed')]).toEqual([410, null])
      expect(await response.json()).toMatchObject({
        code: 'key_erased',
        retryable: false,
        executed: 'unknown',
      })
    }
    expect(runs).toBe(1)
    const told = await cli(['show', name, operationName, key, '--json'])
    expect(told.json).toMatchObject({
      state: 'completed',
      settled_by: 'operator',
      why: expect.stringContaining('erased it'),
    })
    expect(told.json.audit).toMatchObject([
      { action: 'erase', from: 'completed', by: 'ann@example.com', why: 'request 4711' },
    ])
  })

  test('what is not finished is left, and told', async () => {
    const name = account()
    const once = shop.open()
    const unknown = makeCall({ account: name })
    await catchError(once.transaction(unknown, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
    const parked = { account: name, key: randomUUID(), input: {} }
    await once.run(stays, parked)
    await rowsOf(`UPDATE onlyonce.records SET state = 'parked', look_at = NULL WHERE key = $1`, [parked.key])
    const steps = { account: name, key: randomUUID(), input: {} }
    await once.run(stays, steps)
    await rowsOf(
      `UPDATE onlyonce.records SET state = 'retryable', look_at = NULL, expires_at = now() + interval '1 day' WHERE key = $1`,
      [steps.key],
    )
    // It came before any record waits for it.
    await addEvidence(once, { account: name, key: 'call-early', result: { id: 'ch_1' } })
    const ended = await eraseOf(name)
    expect(ended).toMatchObject({
      code: 1,
      json: { erased: 0, left: { unknown: 1, parked: 1, retryable: 1 }, beside: { evidence: 1 } },
    })
    expect((await once.explain(unknown)).state).toBe('unknown')
    await rowsOf(`UPDATE onlyonce.records SET expires_at = now() WHERE key = $1`, [steps.key])
    expect(await eraseOf(name, '--operation', 'stays.in-doubt')).toMatchObject({
      code: 1,
      json: { erased: 1, beside: null },
    })
    expect(await rowOf(steps)).toMatchObject({
      state: 'completed',
      reply_status: 410,
      progress: null,
      input: null,
    })
  })

  test('a retry that takes a record in that moment keeps it; one that a transaction holds is passed over', async () => {
    const name = account()
    const once = shop.open()
    const calls = [makeCall({ account: name }), makeCall({ account: name }), makeCall({ account: name })]
    for (const call of calls)
      await catchError(once.transaction(call, () => Promise.reject(new Error('not now'))))
    const [first] = [...calls].sort((a, b) => (a.key < b.key ? -1 : 1))
    const holder = await beginOutside(shop)
    await holder.query('SELECT FROM onlyonce.records WHERE key = $1 FOR UPDATE', [first!.key])
    expect(await eraseOf(name)).toMatchObject({ code: 1, json: { erased: 2, left: { erasable: 1 } } })
    await holder.query('ROLLBACK')
    // The page is read, and then the retry commits, before the tombstone is written.
    const pool = new pg.Pool({ connectionString: shop.database.serverUrl, max: 1 })
    const client = await pool.connect()
    const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>
    Object.assign(client, {
      query: async (...given: unknown[]) => {
        if (String(given[0]).includes('UPDATE onlyonce.records')) {
          await rowsOf(
            `UPDATE onlyonce.records SET state = 'in_progress', fence = fence + 1, attempt_id = gen_random_uuid(),
            lease_until = now() + interval '1 hour', expires_at = NULL, error_code = NULL, error_message = NULL WHERE key = $1`,
            [first!.key],
          )
        }
        return await query(...given)
      },
    })
    client.release()
    const step = {
      schema: 'onlyonce',
      scope: { account: name, operation: null, key: null },
      by: 'ann',
      why: 'x',
    }
    expect(await erasePage(pool, step, null)).toMatchObject({ erased: 0 })
    expect(await rowOf(first!)).toMatchObject({ state: 'in_progress' })
    await pool.end()
  })

  test('the store makes of a record what the rules make of it', async () => {
    const name = account()
    const once = shop.open()
    const call = makeCall({ account: name })
    await once.transaction(call, async () => 1)
    const store = postgres({ pool: shop.database.pool({ max: 2 }), pooler: POOLER })
    const before = (await store.look(call))!.record
    await eraseOf(name)
    const after = (await store.look(call))!.record
    if (before.state !== 'completed') throw new Error('It was completed.')
    expect(after).toEqual(erase(before, after.changedAt))
  })

  test('a tombstone outlives every reaper, and needs no secret', async () => {
    const name = account()
    const call = makeCall({ account: name })
    const ring = { current: 'gone', keys: { gone: `${SECRET}, which goes`, default: SECRET } }
    await shop.open({ secret: ring }).transaction(call, async () => 1)
    await eraseOf(name)
    const once = shop.open({ secret: { current: 'default', keys: { default: SECRET } } })
    await once.start()
    for (const mode of ['delete', 'expire'] as const) await reaper(once, { mode }).runOnce()
    expect(await catchError(once.transaction(call, async () => 2))).toMatchObject({ code: 'key_erased' })
  })

  test('needs an account, a name, a reason, and a yes', async () => {
    expect((await cli(['erase', ...SIGNED, '--yes'])).stderr).toContain('--account is needed')
    expect((await cli(['erase', '--account', 'a', '--yes'])).stderr).toContain('--actor is needed')
    const asked = await cli(['erase', '--account', 'a', ...SIGNED])
    expect([asked.code, asked.stderr]).toEqual([
      2,
      expect.stringContaining('0 records of a are erased for good.'),
    ])
  })
})
