import { randomUUID } from 'node:crypto'
import pg from 'pg'
import type { PostgresTx } from '../src/store/postgres/index.ts'
import { onlyonce, postgres } from './library.ts'
import { alternate, ratioOf, type Side, spreadOf } from './measure.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

const CALLERS = 64
const CONNECTIONS = 16
const RECORDS = 1_000_000
const secret = 'a secret for the benchmark, which protects nothing.'

interface Queries {
  query(text: string, values: unknown[]): Promise<{ rows: { id: string }[] }>
}

/** The unit of work: writes one row. The same function on every side. */
async function work(tx: Queries): Promise<{ id: string }> {
  const { rows } = await tx.query('INSERT INTO orders (id, note) VALUES ($1, $2) RETURNING id', [
    randomUUID(),
    'one row',
  ])
  return { id: rows[0]!.id }
}

export async function core({ url, rounds, roundMs }: Bench): Promise<Report> {
  const pool = openPool(url)
  await pool.query('CREATE TABLE orders (id uuid PRIMARY KEY, note text NOT NULL)')
  const once = onlyonce({ store: postgres({ connectionString: url, poolSize: CONNECTIONS }), secret })
  await once.start()
  const lent = onlyonce({ store: postgres({ pool }), secret })
  await lent.start()
  const prepared = onlyonce({
    store: postgres({ connectionString: url, poolSize: CONNECTIONS, prepareWork: true }),
    secret,
  })
  await prepared.start()
  const load = { callers: CALLERS, roundMs, rounds }

  const protect: Side = () => once.transaction(callOf(randomUUID()), (tx: PostgresTx) => work(tx as Queries))
  const writes = await alternate(
    {
      unprotected: () => inPlainTransaction(pool),
      autocommit: () => work(pool as unknown as Queries),
      transaction: protect,
      transaction_lent_pool: () =>
        lent.transaction(callOf(randomUUID()), (tx: PostgresTx) => work(tx as Queries)),
      transaction_prepared: () =>
        prepared.transaction(callOf(randomUUID()), (tx: PostgresTx) => work(tx as Queries)),
    },
    load,
  )
  const handle: Side = () => once.execute(callOf(randomUUID()), () => inPlainTransaction(pool))
  const handled = await alternate({ unprotected: () => inPlainTransaction(pool), handler: handle }, load)
  const commits = await commitsPerRequest(pool, protect, CALLERS)
  // The work of the handler is a commit of its own, which is not the protection's. Alone, each claim and each
  // completion is one more; many at once share theirs.
  const handlerCommits = (await commitsPerRequest(pool, handle, 1)) - 1
  const handlerCommitsShared = (await commitsPerRequest(pool, handle, CALLERS)) - 1

  const replayed = await fill(pool, 2_000, protect)
  const reads = await alternate(
    {
      read: () => pool.query('SELECT id, note FROM orders WHERE id = $1', [pick(replayed.orders)]),
      replay: () =>
        once.transaction(callOf(pick(replayed.keys)), () => Promise.reject(new Error('ran again'))),
    },
    load,
  )
  const claims = await claimsWithRecords(url, load)
  await once.close()
  await lent.close()
  await prepared.close()
  await pool.end()
  const rates = { ...writes, handler: handled.handler!, ...reads, ...claims }
  return {
    suite: 'core',
    rates: Object.fromEntries(Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])),
    ratios: {
      'transaction/unprotected': ratioOf(writes, 'transaction', 'unprotected'),
      'transaction_lent_pool/unprotected': ratioOf(writes, 'transaction_lent_pool', 'unprotected'),
      'transaction_prepared/unprotected': ratioOf(writes, 'transaction_prepared', 'unprotected'),
      'transaction/autocommit': ratioOf(writes, 'transaction', 'autocommit'),
      'handler/unprotected': ratioOf(handled, 'handler', 'unprotected'),
      'replay/read': ratioOf(reads, 'replay', 'read'),
      'claim_1m/claim_empty': ratioOf(claims, 'claim_1m', 'claim_empty'),
    },
    aims: {
      'transaction/unprotected': 0.75,
      'handler/unprotected': 0.7,
      'replay/read': 0.9,
      'claim_1m/claim_empty': 0.9,
    },
    commitsPerRequest: {
      transaction: commits,
      handler_alone: handlerCommits,
      handler_under_load: handlerCommitsShared,
    },
    notes: [
      `${CALLERS} callers, ${CONNECTIONS} connections, ${rounds} rounds of ${roundMs} ms a side.`,
      'transaction: with postgres({ connectionString }); lent_pool: with postgres({ pool }) and a pool as pg makes it; prepared: with prepareWork: true.',
      'unprotected: the same function between BEGIN and COMMIT; autocommit: its statement alone, without a transaction.',
    ],
  }
}

const callOf = (key: string) => ({
  account: 'acct_1',
  operation: 'orders.create',
  key,
  input: { note: 'one row' },
})

const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!

async function inPlainTransaction(pool: pg.Pool): Promise<unknown> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const value = await work(client as unknown as Queries)
    await client.query('COMMIT')
    return value
  } finally {
    client.release()
  }
}

/** Transactions that wrote anything get an id; how many ids were used says how many committed writes there were. */
async function commitsPerRequest(pool: pg.Pool, side: Side, callers: number): Promise<number> {
  const nextId = async () =>
    BigInt((await pool.query('SELECT pg_snapshot_xmax(pg_current_snapshot()) AS id')).rows[0].id)
  const before = await nextId()
  const requests = 1_000
  let left = requests
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (left-- > 0) await side()
    }),
  )
  return Number((await nextId()) - before) / requests
}

async function fill(pool: pg.Pool, count: number, side: Side): Promise<{ keys: string[]; orders: string[] }> {
  for (let i = 0; i < count; i += CALLERS) await Promise.all(Array.from({ length: CALLERS }, side))
  const keys = await pool.query('SELECT key FROM onlyonce.records ORDER BY created_at DESC LIMIT $1', [count])
  const orders = await pool.query('SELECT id FROM orders LIMIT $1', [count])
  return { keys: keys.rows.map(({ key }) => key), orders: orders.rows.map(({ id }) => id) }
}

/** The same protected transaction in two schemas, one with a million records in it. */
async function claimsWithRecords(url: string, load: { callers: number; roundMs: number; rounds: number }) {
  const pools = { claim_empty: 'once_empty', claim_1m: 'once_1m' } as const
  const opened = await Promise.all(
    Object.entries(pools).map(async ([name, schema]) => {
      const pool = openPool(url)
      const once = onlyonce({ store: postgres({ pool, schema }), secret })
      await once.start()
      const side: Side = () => once.transaction(callOf(randomUUID()), (tx: PostgresTx) => work(tx as Queries))
      return { name, pool, once, side }
    }),
  )
  const admin = opened[0]!.pool
  await admin.query(`
    INSERT INTO once_1m.records
      (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id,
       created_at, attempted_at, changed_at, expires_at, reply_status, reply_headers, reply_body, reply_schema)
    SELECT 'acct_1', 'orders.create', gen_random_uuid()::text, 'completed', 1, gen_random_uuid(), 'bench',
      sha256(n::text::bytea), 'default', now(), now(), now(), now() + interval '1 day', 200, '[]',
      convert_to(format('{"id":"%s"}', gen_random_uuid()), 'UTF8'), 1
    FROM generate_series(1, ${RECORDS}) AS n`)
  await admin.query('VACUUM ANALYZE once_1m.records')
  await admin.query('CHECKPOINT')
  const rates = await alternate(Object.fromEntries(opened.map(({ name, side }) => [name, side])), {
    ...load,
    beforeEach: async (name) => {
      if (name === 'claim_empty') await admin.query('TRUNCATE once_empty.records CASCADE')
    },
  })
  for (const { once, pool } of opened) {
    await once.close()
    await pool.end()
  }
  return rates
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS })
  // end() resolves before the last connection is closed; the server may be stopped first.
  pool.on('error', () => {})
  return pool
}
