import { connect } from 'node:net'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { proxyTo } from '../../../test/setup/proxy.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { authenticator } from '../accounts/index.ts'
import { bounded } from '../database/bounded.ts'
import type { Service } from '../service.ts'
import { openSandbox } from './sandbox.ts'
import { openTestService, TEST_OPS_TOKEN } from './service.ts'

describe('without its database', () => {
  it('the service says so, starts nothing, and lives', async () => {
    const { ask, post, database } = await openTestService()
    expect((await ask('/readyz')).status).toBe(200)
    await database.drop()
    // Its answer is told again for a second.
    await waitUntil('it is not ready', async () => (await ask('/readyz')).status !== 200)
    const answers = [
      await ask('/readyz'),
      await ask('/v1/balances'),
      await post('/v1/idempotency-keys', { operation: 'payments.create' }),
    ]
    for (const { status, headers, body, text } of answers) {
      expect([status, body.code, body.retryable], text).toEqual([503, 'unavailable', true])
      expect(headers.get('content-type')).toBe('application/problem+json')
      expect(headers.get('retry-after')).toBe('1')
      expect(text).not.toMatch(/postgres|database "|does not exist/)
    }
    expect((await ask('/healthz')).status).toBe(200)
  })
})

it.each(['payments', 'onlyonce'])('without its schema %s the service is not ready', async (schema) => {
  const { ask, database } = await openTestService()
  const admin = database.direct({ max: 1 })
  await admin.query(`ALTER SCHEMA ${schema} RENAME TO lost`)
  await waitUntil('it is not ready', async () => (await ask('/readyz')).status === 503)
  await admin.query(`ALTER SCHEMA lost RENAME TO ${schema}`)
  await waitUntil('it is ready', async () => (await ask('/readyz')).status === 200)
})

it('a table that is being altered is told as a moment to wait, and never as a failure of ours', {
  timeout: 180_000,
}, async () => {
  const { client } = await openSandbox()
  const { ask, post, database } = await openTestService({ gateways: { test: client } })
  const tea = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa' }
  const paid = (await post('/v1/payments', tea)).body.id
  const ops = { apiKey: TEST_OPS_TOKEN }
  const admin = await database.direct({ max: 1 }).connect()
  cleanUpLater(async () => admin.release(true))
  const tables = ['payments.payments', 'payments.api_keys', 'payments.ledger_entries', 'onlyonce.records']
  for (const table of [...tables, 'onlyonce.webhook_messages']) {
    await admin.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
    const answers = await Promise.all([
      ask('/v1/payments'),
      ask('/v1/balances'),
      ask('/v1/events'),
      ask('/v1/idempotency-keys/a-key-of-nobody-here'),
      post('/v1/payments', tea),
      post(`/v1/payments/${paid}/refunds`, { amount: 1 }),
      ask('/ops/records', ops),
      ask('/ops/ledger', ops),
    ])
    await admin.query('ROLLBACK')
    const waited = answers.filter(({ status }) => status >= 400)
    expect.soft(waited.length, table).toBeGreaterThan(0)
    for (const { status, headers, body, text } of waited) {
      expect.soft([503, 409], text).toContain(status)
      expect.soft(body.retryable, text).toBe(true)
      expect.soft(Number(headers.get('retry-after')), text).toBeGreaterThan(0)
      expect.soft(body.executed ?? 'unknown', text).not.toBe('yes')
    }
  }
})

describe('with a database that only reads', () => {
  it('the service answers reads, and every write with 503, and writes again when it may', async () => {
    const { ask, post, database, service } = await openTestService()
    const admin = await database.direct({ max: 1 }).connect()
    cleanUpLater(async () => admin.release(true))
    const setReadOnly = async (on: boolean) => {
      await admin.query(
        `ALTER DATABASE ${pg.escapeIdentifier(database.name)} SET default_transaction_read_only = ${on ? 'on' : 'off'}`,
      )
      // Settings of a database are those of the sessions that begin later.
      await admin.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      )
      await waitUntil('the pool has new connections', async () => {
        const told = await service.pool.query('SHOW default_transaction_read_only').catch(() => null)
        return told?.rows[0]?.default_transaction_read_only === (on ? 'on' : 'off')
      })
    }
    const writes = [() => post('/v1/webhook-endpoints', { url: 'https://shop.example/hooks' })]
    await setReadOnly(true)
    for (const write of writes) {
      const { status, body, text } = await write()
      expect([status, body.retryable, body.executed], text).toEqual([503, true, 'not_by_this_request'])
      expect(text).not.toMatch(/read-only|25006|INSERT/)
    }
    expect((await ask('/v1/balances')).status).toBe(200)
    await waitUntil('it is not ready', async () => (await ask('/readyz')).status === 503)
    await setReadOnly(false)
    await waitUntil('it is ready', async () => (await ask('/readyz')).status === 200)
    for (const write of writes) expect((await write()).status).toBe(201)
  })
})

describe('over a link on which nothing comes back', () => {
  it('a look at an API key is given up, and the next one is served', async () => {
    const { database, apiKey, account } = await openTestService()
    const { proxy, url } = await proxyTo(database)
    const pool = database.pool({ connectionString: url, max: 1 })
    await pool.query('SELECT 1')
    const { authenticate } = authenticator(bounded(pool, 200))
    proxy.setFault({ kind: 'black_hole' })
    // All of them: those that come while one look is under way wait behind it.
    const asked = Array.from({ length: 3 }, () => authenticate(`Bearer ${apiKey}`))
    for (const end of await Promise.allSettled(asked)) expect(end).toMatchObject({ status: 'rejected' })
    proxy.setFault(null)
    await waitUntil('the next one is served', async () => {
      const caller = await authenticate(`Bearer ${apiKey}`).catch(() => null)
      return caller?.account === account
    })
  }, 20_000)

  it('a look waits for its connection and its answer no longer than for one of them, and further ones are refused', async () => {
    const { database } = await openTestService()
    const { proxy, url } = await proxyTo(database)
    // As in the service a connection may be waited for longer than a look.
    const pool = database.pool({ connectionString: url, max: 1, connectionTimeoutMillis: 60_000 })
    proxy.setFault({ kind: 'black_hole' })
    let asked = 0
    const counting = {
      query: (...given: [pg.QueryConfig]) => {
        asked += 1
        return pool.query(...given)
      },
    } as unknown as pg.Pool
    const look = () => bounded(counting, 200).query('SELECT 1 AS one')
    const unavailable = { code: 'unavailable' }
    await expect(look()).rejects.toThrow('Query read timeout')
    expect(asked).toBe(1)
    // Among them one asks whether it is there again; none of the others asks anything.
    const further = await Promise.allSettled([look(), look(), look(), look()])
    for (const end of further) expect(end).toMatchObject({ status: 'rejected', reason: unavailable })
    expect(asked).toBe(2)
    proxy.setFault({ kind: 'reset' })
    await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
    proxy.setFault(null)
    await waitUntil('it answers again', async () => (await look().catch(() => null)) !== null)
  }, 20_000)
})

describe('with a key of encryption', () => {
  it('no secret of an endpoint is in any table, and a replay shows it all the same', async () => {
    const { post, service } = await openTestService({
      config: { encryption: 'the-encryption-key-of-the-tests-0123456789' },
    })
    const given = { key: 'a-sealed-secret-1' }
    const made = await post('/v1/webhook-endpoints', { url: 'https://shop.example/hooks' }, given)
    expect(made.status, made.text).toBe(201)
    const { secret } = made.body
    const { rows: tables } = await service.pool.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('onlyonce', 'payments')`,
    )
    const raw = Buffer.from(secret.slice('whsec_'.length), 'base64')
    const traces = [Buffer.from(secret).toString('hex'), raw.toString('hex'), secret]
    for (const { name } of tables) {
      const { rows } = await service.pool.query<{ row: string }>(
        `SELECT row_to_json(t)::text AS row FROM ${name} t`,
      )
      const held = rows.filter(({ row }) => traces.some((trace) => row.includes(trace)))
      expect(held, name).toEqual([])
    }
    expect(tables.length).toBeGreaterThan(10)
    expect((await post('/v1/webhook-endpoints', { url: 'https://shop.example/hooks' }, given)).text).toBe(
      made.text,
    )
  })
})

describe('with no connection to its database in time', () => {
  const BODY = { operation: 'payments.create' }
  const open = async (queueMaxMs: number) => {
    const calm = await openTestService()
    const { limits } = calm.service.config
    const opened = await openTestService({
      database: calm.database,
      config: { limits: { ...limits, queueMaxMs } },
    })
    const { pool } = opened.service
    const held = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()))
    const free = () => {
      for (const client of held.splice(0)) client.release()
    }
    return { ...opened, free }
  }

  it('new work is refused early, and what waits is served when connections are free', async () => {
    const { post, free, service } = await open(200)
    expect(await isOverloaded(service)).toBe(false)
    const waiting = Array.from({ length: 5 }, () => post('/v1/idempotency-keys', BODY))
    await waitUntil('it sheds', () => isOverloaded(service))
    free()
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual([201, 201, 201, 201, 201])
    expect((await post('/v1/idempotency-keys', BODY)).status).toBe(201)
  })

  it('everything is refused at once while nobody gets any, with the time to come back', async () => {
    const { ask, post, free, service } = await open(200)
    const waiting = Array.from({ length: 5 }, () => post('/v1/idempotency-keys', BODY))
    await waitUntil('it has stalled', () => isStalled(service))
    expect((await ask('/v1/balances')).status).toBe(503)
    const refused = await post('/v1/idempotency-keys', BODY)
    expect([refused.status, refused.body.code], refused.text).toEqual([503, 'overloaded'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1)
    free()
    await Promise.all(waiting)
    await waitUntil('it serves', async () => (await post('/v1/idempotency-keys', BODY)).status === 201)
  })
})

function isStalled({ limits }: Pick<Service, 'limits'>): boolean {
  try {
    limits.refuseWhenStalled()
    return false
  } catch (error) {
    return (error as { code?: unknown }).code === 'overloaded'
  }
}

async function isOverloaded({ limits }: Pick<Service, 'limits'>): Promise<boolean> {
  try {
    await limits.admitWork({ account: 'acct_nobody:test', operation: 'o', key: 'a-key-of-nobody' })
    return false
  } catch (error) {
    return (error as { code?: unknown }).code === 'overloaded'
  }
}

describe('with too much to do', () => {
  it('no write begins, a replay is served, and afterwards all is as before', async () => {
    const calm = await openTestService()
    const { url, ask, post, apiKey } = await openTestService({
      config: { limits: { ...calm.service.config.limits, inFlightMax: 2 } },
    })
    const done = { key: 'done-before-the-rush-1' }
    const body = {}
    const made = await post('/v1/webhook-endpoints', { url: 'https://hooks.example.com/rush' })
    const path = `/v1/webhook-endpoints/${made.body.id}/rotate-secret`
    const first = await post(path, body, done)
    const waiting = [1, 2].map(() => connect(Number(new URL(url).port), '127.0.0.1'))
    for (const socket of waiting) {
      socket.on('error', () => {})
      cleanUpLater(async () => void socket.destroy())
      // Its body never comes.
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${apiKey}\r\n` +
          'Content-Type: application/json\r\nContent-Length: 10\r\n\r\n',
      )
    }
    const write = { key: 'begun-in-the-rush-1' }
    // Each time with a key of its own: one that got in would be replayed.
    const rush = async () => (await post(path, body)).status
    await waitUntil('both are under way', async () => (await rush()) === 503)
    const refused = await post(path, body, write)
    expect([refused.status, refused.body.code], refused.text).toEqual([503, 'overloaded'])
    expect(refused.headers.get('retry-after')).toBe('1')
    expect((await post(path, body, done)).text).toBe(first.text)
    expect((await ask('/v1/balances')).status).toBe(200)
    for (const socket of waiting) socket.destroy()
    await waitUntil('they are gone', async () => (await post(path, body, write)).status === 200)
  })
})
