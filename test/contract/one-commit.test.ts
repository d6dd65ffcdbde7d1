import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { addressWithin, withClient } from '../setup/client.ts'
import { type DurableServer, startDurableServer } from '../setup/durable-server.ts'
import { catchError, leaveEffect, makeCall, POOLERS, SECRET, waitUntil } from './shop.ts'

const CALLS = 200
let server: DurableServer

beforeAll(async () => {
  // A server of one's own, where nobody else writes: transaction ids are counted by the server, not the database.
  server = await startDurableServer({ autovacuum: 'off', synchronous_commit: 'off' })
  await withClient(server.serverUrl, (client) =>
    client.query('CREATE TABLE effects (id bigserial PRIMARY KEY, note text NOT NULL)'),
  )
})

/**
 * How many transactions that wrote something began meanwhile: each of them, and nobody else, takes the next
 * id, whether it commits or not, and so does each subtransaction.
 */
async function countWriters(work: () => Promise<void>): Promise<number> {
  const readId = () =>
    withClient(server.serverUrl, async (client) => {
      const { rows } = await client.query('SELECT pg_current_xact_id()::text::bigint AS id')
      return Number(rows[0].id)
    })
  const before = await readId()
  await work()
  return (await readId()) - before - 1
}

/**
 * Commits of all kinds, read-only ones included. They are exact once the backends have gone. Looks from another
 * database, because to wait is to commit there as well.
 */
async function readCommits(): Promise<{ commits: number; rollbacks: number }> {
  const datname = new URL(server.serverUrl).pathname.slice(1)
  return await withClient(addressWithin(server.serverUrl, 'template1'), async (client) => {
    await waitUntil('nobody else is connected', async () => {
      const { rows } = await client.query(
        `SELECT count(*)::int AS count FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      )
      return rows[0].count === 0
    })
    await client.query('SELECT pg_stat_clear_snapshot()')
    const { rows } = await client.query(
      `SELECT xact_commit::int AS commits, xact_rollback::int AS rollbacks
       FROM pg_stat_database WHERE datname = $1`,
      [datname],
    )
    return rows[0]
  })
}

async function openOnce(pooler: 'none' | 'transaction', max = 8) {
  const pool = new pg.Pool({ connectionString: server.url, max })
  pool.on('error', () => {})
  const once = onlyonce({ store: postgres({ pool, pooler }), secret: SECRET })
  cleanUpLater(async () => {
    await once.close()
    if (!pool.ended) await pool.end()
  })
  await once.start()
  return { pool, once }
}

describe.each(POOLERS)('commits, with pooler %s', (pooler) => {
  test('a protected transaction is one commit', async () => {
    const { once } = await openOnce(pooler)
    const note = makeCall().key
    const calls = Array.from({ length: CALLS }, () => makeCall())
    const run = async () => {
      const results = await Promise.all(
        calls.map((call) => once.transaction(call, (tx) => leaveEffect(tx, note))),
      )
      for (const result of results) expect(result.outcome).toBe('executed')
    }
    expect(await countWriters(run)).toBe(CALLS)
    const ids = await withClient(server.serverUrl, async (client) => {
      const { rows } = await client.query(
        'SELECT count(DISTINCT xmin::text)::int AS count FROM effects WHERE note = $1',
        [note],
      )
      return rows[0].count
    })
    expect(ids).toBe(CALLS)
    // The other half of the count: a replay writes nothing at all.
    const replay = async () => {
      for (const call of calls)
        expect((await once.transaction(call, async () => {})).outcome).toBe('replayed')
    }
    expect(await countWriters(replay)).toBe(0)
  })

  test('at isolation level serializable, one after the other, it is one commit as well', async () => {
    const { once } = await openOnce(pooler)
    const run = async () => {
      for (let turn = 0; turn < CALLS; turn++) {
        await once.transaction({ ...makeCall(), isolation: 'serializable' }, (tx) => leaveEffect(tx, 'x'))
      }
    }
    expect(await countWriters(run)).toBe(CALLS)
  })

  test('an operation that writes, calls and writes is two, as it is without protection', async () => {
    const { once } = await openOnce(pooler)
    const pay = operation('payments.commits', async (op, _: null) => {
      await op.transaction('created', (tx) => leaveEffect(tx, 'created'))
      const charge = await op.call('charged', { call: async ({ key }) => key })
      return op.transaction('settled', async (tx) => {
        await leaveEffect(tx, 'settled')
        return reply(201, { charge })
      })
    })
    const run = async () => {
      for (let turn = 0; turn < CALLS; turn++) {
        const { account, key } = makeCall()
        expect(await once.run(pay, { account, key, input: null })).toMatchObject({ outcome: 'executed' })
      }
    }
    expect(await countWriters(run)).toBe(2 * CALLS)
  })

  test('exclusive adds none', async () => {
    const { once } = await openOnce(pooler)
    const run = async () => {
      for (let turn = 0; turn < CALLS; turn++) {
        await once.transaction({ ...makeCall(), exclusive: true }, (tx) => leaveEffect(tx, 'x'))
      }
    }
    expect(await countWriters(run)).toBe(CALLS)
  })

  test('a failure leaves one more: the record that keeps the fingerprint', async () => {
    const { once } = await openOnce(pooler)
    const run = async () => {
      await catchError(
        once.transaction(makeCall(), async (tx) => {
          await leaveEffect(tx, 'x')
          throw new Error('no')
        }),
      )
    }
    expect(await countWriters(run)).toBe(2)
  })

  test('lookups are read-only, at most one for each call, and fewer when calls come together', async () => {
    const before = await readCommits()
    const { once, pool } = await openOnce(pooler)
    const work = (note: string) => once.transaction(makeCall(), (tx) => leaveEffect(tx, note))
    for (let turn = 0; turn < CALLS; turn++) await work('alone')
    await pool.end()
    const between = await readCommits()
    // Some to start with: checking the schema, and the counting itself.
    const few = 20
    expect(between.commits - before.commits).toBeLessThanOrEqual(2 * CALLS + few)

    const together = await openOnce(pooler)
    await Promise.all(
      Array.from({ length: CALLS }, () => together.once.transaction(makeCall(), async () => 1)),
    )
    await together.pool.end()
    const after = await readCommits()
    expect(after.commits - between.commits).toBeLessThanOrEqual(1.5 * CALLS + few)
    expect(after.rollbacks - before.rollbacks).toBe(0)
  })
})
