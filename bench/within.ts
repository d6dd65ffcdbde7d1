import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { onlyonce, outbox, postgres } from './library.ts'
import { alternate, ratioOf, type Side, spreadOf } from './measure.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

/** One: what is measured is the time that statements one after the other take, and no wait for a processor. */
const CALLERS = 1
const secret = 'a secret for the benchmark, which protects nothing.'

/** What calls on a transaction of the caller's own cost, and what one statement more would. */
export async function withinClient({ url, rounds, roundMs }: Bench): Promise<Report> {
  const pool = new pg.Pool({ connectionString: url, max: CALLERS })
  pool.on('error', () => {})
  await pool.query('CREATE TABLE orders (id uuid PRIMARY KEY, note text NOT NULL)')
  const once = onlyonce({ store: postgres({ pool }), secret, background: false })
  await once.start()
  const events = outbox(once)
  const inTransaction = async (work: (client: pg.PoolClient) => Promise<unknown>) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await work(client)
      await client.query('COMMIT')
    } finally {
      client.release()
    }
  }
  const insert = (tx: Pick<pg.PoolClient, 'query'>) =>
    tx.query('INSERT INTO orders (id, note) VALUES ($1, $2)', [randomUUID(), 'one row'])
  const callOf = () => ({ account: 'acct_1', operation: 'orders.create', key: randomUUID(), input: {} })
  const within = (client: pg.PoolClient) =>
    once.within(client, callOf(), async (tx) => void (await insert(tx as never)))
  const emit = (client: pg.PoolClient) =>
    events.emit(client as never, { account: 'acct_1', type: 'order.created' })
  const sides: Record<string, Side> = {
    unprotected: () => inTransaction(insert),
    within: () => inTransaction(within),
    within_and_a_statement: () =>
      inTransaction(async (client) => {
        await client.query(WHICH)
        await within(client)
      }),
    emit: () => inTransaction(emit),
    emit_and_a_statement: () =>
      inTransaction(async (client) => {
        await client.query(WHICH)
        await emit(client)
      }),
  }
  const rates = await alternate(sides, { callers: CALLERS, roundMs, rounds })
  await once.close()
  await pool.end()
  return {
    suite: 'within',
    rates: Object.fromEntries(Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])),
    ratios: {
      'within/unprotected': ratioOf(rates, 'within', 'unprotected'),
      'within_and_a_statement/within': ratioOf(rates, 'within_and_a_statement', 'within'),
      'emit/unprotected': ratioOf(rates, 'emit', 'unprotected'),
      'emit_and_a_statement/emit': ratioOf(rates, 'emit_and_a_statement', 'emit'),
    },
    aims: {},
    commitsPerRequest: {},
    notes: [
      `${CALLERS} caller with a connection, ${rounds} rounds of ${roundMs} ms a side.`,
      '…_and_a_statement: the same with one statement more on the client, as the question for the id of the transaction is.',
    ],
  }
}

const WHICH = 'SELECT pg_current_xact_id()::text AS xid, pg_backend_pid() AS key'
