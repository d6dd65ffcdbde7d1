/** A service without a secret of its own: one is made, kept in the database, and goes on to count when a real one is set. */
import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { behindPooler, POOLER } from '../setup/pooler.ts'
import { proxyTo } from '../setup/proxy.ts'
import { hearWarnings } from '../setup/warnings.ts'
import { catchError, makeCall, openShop, SECRET, type Shop, waitUntil } from './shop.ts'

let shop: Shop
beforeEach(async () => {
  shop = await openShop()
  vi.unstubAllEnvs()
})

const open = (options: Parameters<Shop['open']>[0] = {}) => shop.open({ secret: undefined, ...options })
const kept = async () => (await shop.observer.query('SELECT key_id FROM onlyonce.made_secrets')).rows
const work = async () => ({ id: 'tr_1' })

describe('without a secret', () => {
  test('processes that start at once agree on one, and are warned at every start', async () => {
    const told = hearWarnings('OnlyonceSecretWarning')
    // The tables are there, and no process gets past the insert before all of them have seen that there is no secret.
    await shop.open().start()
    const holder = await shop.database.direct({ max: 1 }).connect()
    await holder.query('BEGIN; LOCK TABLE onlyonce.made_secrets IN SHARE MODE')
    const fleet = Array.from({ length: 6 }, () => open({ poolOptions: { max: 2 } }))
    const call = makeCall({ input: { amount: 1 } })
    const ending = Promise.all(fleet.map((once) => once.transaction(call, work)))
    await shop.waitForWaiters(behindPooler('two connections are two transactions') ? 2 : 6)
    await holder.query('COMMIT')
    holder.release()
    const ended = await ending
    expect(ended.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
    expect(ended.map(({ outcome }) => outcome)).not.toContain('key_reused')
    expect(await kept()).toHaveLength(1)
    const reused = await fleet[0]!.transaction({ ...call, input: { amount: 2 } }, work)
    expect(reused.outcome).toBe('key_reused')
    await waitUntil('every process is warned', () => told.length === 6)
    await open().start()
    await waitUntil('the next start too', () => told.length === 7)
    expect(told[6]).toMatch(/Make one with: node -p .* and pass it as secret/)
    expect(told.join()).not.toContain((await shop.observer.query(BYTES)).rows[0].hex)
  })

  test('every kind of call waits for it, and so does HTTP', async () => {
    const { transaction, execute, within } = kinds()
    for (const run of [transaction, execute, within]) {
      expect((await run()).outcome).toBe('executed')
    }
    const once = open()
    const serve = idempotent(once, { account: () => 'acct_1', operation: 'orders' }, async () =>
      Response.json({}),
    )
    const send = () =>
      serve(
        new Request('http://shop/orders', { method: 'POST', headers: { 'idempotency-key': 'a-long-key' } }),
      )
    expect((await send()).headers.get('idempotent-replayed')).toBe(null)
    expect((await send()).headers.get('idempotent-replayed')).toBe('true')
  })

  function kinds() {
    return {
      transaction: () => open().transaction(makeCall(), work),
      execute: () => open().execute(makeCall(), work),
      within: async () => {
        const pool = shop.database.pool({ max: 1 })
        const client = await pool.connect()
        await client.query('BEGIN')
        const result = await open().within(client, makeCall(), work)
        await client.query('COMMIT')
        client.release()
        return result
      },
    }
  }

  test('a database that is away is a 503, and is asked again by the next request', async () => {
    const { proxy, url, heal } = await proxyTo(shop.database)
    proxy.setFault({ kind: 'refuse' })
    const once = open({ pool: shop.database.pool({ connectionString: url, max: 2 }) })
    const serve = idempotent(once, { account: () => 'acct_1', operation: 'orders' }, async () =>
      Response.json({}),
    )
    const send = () =>
      serve(
        new Request('http://shop/orders', { method: 'POST', headers: { 'idempotency-key': 'a-long-key' } }),
      )
    expect((await send()).status).toBe(503)
    await heal()
    expect((await send()).status).toBe(200)
  })

  test('a key is issued after the start, and not before', async () => {
    const once = open()
    const wanted = { account: 'acct_1', operation: 'transfers.create' }
    expect(() => once.issueKey(wanted)).toThrow(/Await once.start\(\)/)
    await once.start()
    const { key } = once.issueKey(wanted)
    expect((await open().transaction({ ...wanted, key, input: 1 }, work)).outcome).toBe('executed')
  })
})

const BYTES = `SELECT encode(bytes, 'hex') AS hex FROM onlyonce.made_secrets`

describe('when a real secret is set', () => {
  test('records that were made without one still replay, and tell another request apart', async () => {
    const call = makeCall({ input: { amount: 1 } })
    await open().transaction(call, work)
    vi.stubEnv('NODE_ENV', 'production')
    const told = hearWarnings('OnlyonceSecretWarning')
    const real = open({ secret: SECRET })
    expect(await real.transaction(call, work)).toMatchObject({ outcome: 'replayed' })
    expect((await real.transaction({ ...call, input: { amount: 2 } }, work)).outcome).toBe('key_reused')
    const fresh = makeCall()
    await real.transaction(fresh, work)
    const { rows } = await shop.observer.query(
      'SELECT fingerprint_key_id FROM onlyonce.records WHERE key = $1',
      [fresh.key],
    )
    expect(rows).toEqual([{ fingerprint_key_id: 'default' }])
    expect(told).toEqual([])
  })

  test('a process without it is refused, and makes no secret of its own', async () => {
    await open({ secret: SECRET }).transaction(makeCall(), work)
    expect(await catchError(open().start())).toMatchObject({
      code: 'key_ring_incomplete',
      message: expect.stringContaining('"default"'),
    })
  })

  test('a key that was issued without one counts, but in production it does not: the database has its secret', async () => {
    const before = open()
    await before.start()
    const wanted = { account: 'acct_1', operation: 'transfers.create' }
    const [first, second] = [before.issueKey(wanted).key, before.issueKey(wanted).key]
    expect(
      (await startedWith(SECRET).then((once) => once.transaction({ ...wanted, key: first }, work))).outcome,
    ).toBe('executed')
    vi.stubEnv('NODE_ENV', 'production')
    const live = await startedWith(SECRET)
    expect(await catchError(live.transaction({ ...wanted, key: second }, work))).toMatchObject({
      code: 'key_signer_unknown',
    })
  })

  async function startedWith(secret: string) {
    const once = open({ secret })
    await once.start()
    return once
  }

  test('its role need not be able to read the secret that was made', async () => {
    await open().transaction(makeCall(), work)
    const role = `blind_${randomBytes(4).toString('hex')}`
    const password = randomBytes(12).toString('hex')
    await shop.observer.query(`CREATE ROLE ${role} LOGIN PASSWORD '${password}';
      GRANT USAGE ON SCHEMA onlyonce TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA onlyonce TO ${role};
      REVOKE ALL ON onlyonce.made_secrets FROM ${role};
      DELETE FROM onlyonce.records; DELETE FROM onlyonce.key_ids`)
    cleanUpLater(async () => void (await shop.observer.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)))
    const url = Object.assign(new URL(shop.database.serverUrl), { username: role, password })
    const openAs = (secret: string | undefined) => {
      const store = postgres({
        pool: shop.database.pool({ connectionString: url.href, max: 2 }),
        pooler: POOLER,
      })
      const once = onlyonce({ store, secret, background: false })
      cleanUpLater(() => once.close({ maxMs: 1_000 }))
      return once
    }
    await openAs(SECRET).start()
    expect(await catchError(openAs(undefined).start())).toMatchObject({
      code: 'store_misconfigured',
    })
  })
})

test('where the secret was lost, a start is refused: no retry is told that its key is reused', async () => {
  const call = makeCall({ input: { amount: 1 } })
  await open().transaction(call, work)
  await shop.observer.query('DELETE FROM onlyonce.made_secrets')
  expect(await catchError(open().transaction(call, work))).toMatchObject({ code: 'key_ring_incomplete' })
})

describe('no secret is an error', () => {
  test.each(['production', 'Production', ' prod '])('where NODE_ENV is %j', (env) => {
    vi.stubEnv('NODE_ENV', env)
    for (const store of [memory(), postgres({ connectionString: 'postgres://nobody@127.0.0.1:1/none' })]) {
      expect(() => onlyonce({ store })).toThrow(/randomBytes\(32\)/)
      expect(() => onlyonce({ store, secret: undefined })).toThrow(/NODE_ENV is production/)
    }
    vi.unstubAllEnvs()
  })

  test('beside encryption, where it is empty, and where the store keeps none', async () => {
    const store = memory()
    expect(() => onlyonce({ store, encryption: SECRET })).toThrow(/replies are encrypted/)
    expect(() => onlyonce({ store, secret: '' })).toThrow(/shorter than 32 bytes/)
    const other = Object.assign(memory(), { start: async () => {} })
    const once = onlyonce({ store: other, background: false })
    expect(await catchError(once.execute(makeCall(), work))).toMatchObject({
      code: 'secret_invalid',
      message: expect.stringContaining('this store keeps none'),
    })
  })
})

test('the memory store keeps one as long as its records, and warns of nothing', async () => {
  const told = hearWarnings('OnlyonceSecretWarning')
  const store = memory()
  const [one, other] = [onlyonce({ store, background: false }), onlyonce({ store, background: false })]
  const call = makeCall()
  expect((await one.execute(call, work)).outcome).toBe('executed')
  expect((await other.execute(call, work)).outcome).toBe('replayed')
  const real = onlyonce({ store, secret: SECRET, background: false })
  expect((await real.execute(call, work)).outcome).toBe('replayed')
  await new Promise(setImmediate)
  expect(told).toEqual([])
})
