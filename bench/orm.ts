import { randomUUID } from 'node:crypto'
import type { PostgresTx } from '../src/store/postgres/index.ts'
import { currentTx, onlyonce, poolOf, postgres } from './library.ts'
import { alternate, ratioOf, type Side, spreadOf } from './measure.ts'
import type { Report } from './report.ts'
import type { Bench } from './run.ts'

const CALLERS = 64
const CONNECTIONS = 16
const secret = 'a secret for the benchmark, which protects nothing.'

interface Queries {
  query(text: string, values?: unknown[]): Promise<unknown>
}

/** The unit of work: two statements, as an ORM sends them for a row and what belongs to it. */
async function work(queries: Queries): Promise<{ id: string }> {
  const id = randomUUID()
  await queries.query('INSERT INTO orders (id, note) VALUES ($1, $2) RETURNING id', [id, 'one row'])
  await queries.query('SELECT note FROM orders WHERE id = $1', [id])
  return { id }
}

/** What an ORM on the running transaction costs beside `tx` itself, and what it costs to find that transaction. */
export async function orm({ url, rounds, roundMs }: Bench): Promise<Report> {
  const open = async (finds: boolean) => {
    const made = onlyonce({
      store: postgres({ connectionString: url, poolSize: CONNECTIONS, currentTx: finds }),
      secret,
    })
    await made.start()
    return made
  }
  const once = await open(false)
  const finding = await open(true)
  await once.transaction(callOf(), async (tx) => {
    await tx.query('CREATE TABLE orders (id uuid PRIMARY KEY, note text NOT NULL)')
  })
  const on = (door: typeof once, run: (tx: PostgresTx) => Promise<unknown>): Side => {
    return () => door.transaction(callOf(), async (tx) => void (await run(tx)))
  }
  const rates = await alternate(
    {
      tx: on(once, (tx) => work(tx as Queries)),
      pool_of: on(once, (tx) => work(poolOf(tx) as unknown as Queries)),
      pool_of_nested: on(once, nested),
      current_tx: on(finding, () => work(currentTx() as Queries)),
    },
    { callers: CALLERS, roundMs, rounds },
  )
  await once.close()
  await finding.close()
  return {
    suite: 'orm',
    rates: Object.fromEntries(Object.entries(rates).map(([name, values]) => [name, spreadOf(values)])),
    ratios: {
      'pool_of/tx': ratioOf(rates, 'pool_of', 'tx'),
      'pool_of_nested/tx': ratioOf(rates, 'pool_of_nested', 'tx'),
      'current_tx/tx': ratioOf(rates, 'current_tx', 'tx'),
    },
    aims: { 'pool_of/tx': 0.9 },
    commitsPerRequest: {},
    notes: [
      `${CALLERS} callers, ${CONNECTIONS} connections, ${rounds} rounds of ${roundMs} ms a side; a protected transaction with two statements.`,
      'tx: on tx itself; pool_of: the same through poolOf(tx); pool_of_nested: between BEGIN and COMMIT there, which are two round trips more.',
      'current_tx: with currentTx: true, on currentTx(); the sides take turns, and only this one has an AsyncLocalStorage entered.',
    ],
  }
}

async function nested(tx: PostgresTx): Promise<void> {
  const client = await poolOf(tx).connect()
  await client.query('BEGIN')
  await work(client as unknown as Queries)
  await client.query('COMMIT')
  client.release()
}

const callOf = () => ({
  account: 'acct_1',
  operation: 'orders.create',
  key: randomUUID(),
  input: { note: 'one row' },
})
