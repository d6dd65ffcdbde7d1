import { randomBytes } from 'node:crypto'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { invalid, onlyonce } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { addEvidence } from '../../src/workers/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { POOLER } from '../setup/pooler.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { catchError, makeCall, openShop, SECRET, type Shop, waitUntil } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

/** A role that may do everything with the tables but delete from them, and the address at which it connects. */
const roleWithoutDelete = () => roleWith('SELECT, INSERT, UPDATE')

async function roleWith(rights: string): Promise<string> {
  const role = `keeps_all_${randomBytes(4).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  await shop.observer.query(`CREATE ROLE ${role} LOGIN PASSWORD '${password}';
    GRANT USAGE ON SCHEMA onlyonce TO ${role};
    GRANT ${rights} ON ALL TABLES IN SCHEMA onlyonce TO ${role};
    GRANT USAGE ON ALL SEQUENCES IN SCHEMA onlyonce TO ${role}`)
  cleanUpLater(async () => void (await shop.observer.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`)))
  const url = new URL(shop.database.serverUrl)
  Object.assign(url, { username: role, password })
  return url.href
}

async function openAs(url: string, options: Partial<Parameters<typeof onlyonce>[0]> = {}) {
  const pool = shop.database.pool({ connectionString: url, max: 3 })
  const once = onlyonce({
    secret: SECRET,
    background: false,
    ...options,
    store: postgres({ pool, pooler: POOLER }),
  })
  cleanUpLater(() => once.close({ maxMs: 1_000 }))
  return once
}

/** A record whose retention is over for so long that any reaper takes it. */
async function leaveExpired(): Promise<string> {
  const call = makeCall()
  await shop.open().transaction(call, async () => 1)
  await shop.observer.query(
    `UPDATE onlyonce.records SET expires_at = now() - interval '30 days', changed_at = now() - interval '30 days'
     WHERE key = $1`,
    [call.key],
  )
  return call.key
}

const isThere = async (key: string) =>
  (await shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])).rowCount === 1

test('a role that may not delete is told so once, and everything but pruning goes on', async () => {
  const key = await leaveExpired()
  const quick = LIMITS as { reapEveryMs: number }
  const before = quick.reapEveryMs
  quick.reapEveryMs = 5
  onTestFinished(() => {
    quick.reapEveryMs = before
  })
  const heard = makeRecorder()
  const once = await openAs(await roleWithoutDelete(), { background: true, observe: heard })
  await once.start()
  await waitUntil('it is told', () => heard.of('worker_failed').length > 0)
  const call = makeCall()
  expect((await once.execute(call, async () => 1)).outcome).toBe('executed')
  expect((await once.transaction(makeCall(), async () => 1)).outcome).toBe('executed')
  expect((await once.execute(call, async () => 2)).outcome).toBe('replayed')
  await once.close()
  expect(heard.of('worker_failed')).toMatchObject([{ worker: 'background.reaper', code: '42501' }])
  expect(await isThere(key)).toBe(true)
  // With the right it would have gone: the test can fail.
  const other = shop.open({ background: true })
  await other.start()
  await waitUntil('it is pruned', async () => !(await isThere(key)))
})

test('a request that is called invalid leaves its record retryable, where it cannot be deleted', async () => {
  const once = await openAs(await roleWithoutDelete())
  const call = makeCall()
  const error = await catchError(once.execute(call, () => Promise.reject(invalid())))
  expect(error).toMatchObject({ code: 'request_invalid_kept' })
  // There was no earlier request, and the sentence must not say that there was.
  expect(error.message).not.toMatch(/An earlier request with this key has/)
  expect((await once.explain(call)).state).toBe('retryable')
  expect((await once.execute(call, async () => 1)).outcome).toBe('executed')
})

test('a start with a key of its own does not fail for one that is listed and used no more', async () => {
  await shop.observer.query(
    `INSERT INTO onlyonce.key_ids (purpose, key_id) VALUES ('fingerprint', 'used no more')`,
  )
  const once = await openAs(await roleWithoutDelete())
  await once.start()
  expect((await once.execute(makeCall(), async () => 1)).outcome).toBe('executed')
})

test('a start with other bytes under the id of a key that no record needs is remembered, and may be made again', async () => {
  const url = await roleWithoutDelete()
  const start = async (purpose: 'secret' | 'encryption', name: string, call = makeCall()) => {
    const keys = { current: 'changed', keys: { changed: `${name}-0123456789-0123456789-0123456789` } }
    const once = await openAs(url, { [purpose]: keys })
    return await once.transaction(call, async () => name)
  }
  await shop.observer.query(`DELETE FROM onlyonce.records`)
  for (const purpose of ['secret', 'encryption'] as const) {
    const call = makeCall()
    await start(purpose, 'earlier')
    await shop.observer.query(`DELETE FROM onlyonce.records`)
    expect(await start(purpose, 'later', call)).toEqual({ outcome: 'executed', value: 'later' })
    expect(await start(purpose, 'later', call)).toEqual({ outcome: 'replayed', value: 'later' })
    expect(await catchError(start(purpose, 'earlier', call))).toMatchObject({ code: 'key_ring_incomplete' })
    await shop.observer.query(`DELETE FROM onlyonce.records`)
  }
})

test.each([
  [
    'SELECT',
    'INSERT, UPDATE on onlyonce.records, INSERT on onlyonce.attempts, INSERT, UPDATE on onlyonce.key_ids',
  ],
  ['SELECT, INSERT', 'UPDATE on onlyonce.records, UPDATE on onlyonce.key_ids'],
])('a role with %s alone is refused at the start, and runs no handler', async (rights, missing) => {
  await shop.open().start()
  const once = await openAs(await roleWith(rights))
  const error = await catchError(once.start())
  expect(error).toMatchObject({ code: 'store_misconfigured', message: expect.stringContaining(missing) })
  expect(error.message).toContain('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA onlyonce')
  let runs = 0
  await catchError(once.execute(makeCall(), async () => ++runs))
  expect(runs).toBe(0)
})

/** Takes rights from a role that has those of a service. */
async function roleLacking(taken: string): Promise<string> {
  const url = await roleWithoutDelete()
  await shop.observer.query(`REVOKE ${taken} FROM ${new URL(url).username}`)
  return url
}

test('a start names the table of migrations, where the role may not read it', async () => {
  const pool = shop.database.pool({
    connectionString: await roleLacking('SELECT ON onlyonce.migrations'),
    max: 1,
  })
  const refused = await catchError(migrate(pool, { schema: 'onlyonce', mode: 'verify' }))
  expect(refused).toMatchObject({ code: 'store_misconfigured' })
  expect(`${refused}`).toContain('onlyonce.migrations')
})

test('evidence and decisions tell a missing right as what it is', async () => {
  const once = await openAs(await roleLacking('SELECT, INSERT ON onlyonce.audit, onlyonce.evidence'))
  const id = { account: 'acme', operation: 'payments.create', key: 'key-of-a-request-that-is-none' }
  const missing = { code: 'store_misconfigured' }
  expect(await catchError(addEvidence(once, { account: 'acme', key: 'k', result: 1 }))).toMatchObject(missing)
  const refused = await catchError(operator(once).show(id))
  expect(refused).toMatchObject(missing)
  expect(`${refused}`).toContain('audit')
})

test('what a migration has applied is told, and a page without a next one is asked for again', async () => {
  expect(await migrate(shop.observer, { schema: 'onlyonce', mode: 'apply' })).toEqual({ applied: [] })
  const desk = operator(shop.open())
  const { cursor } = await desk.list({ limit: 1 })
  expect(await desk.list({ limit: 1, cursor })).toHaveProperty('items')
})
