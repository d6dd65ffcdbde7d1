import pg from 'pg'
import {
  charge,
  insertPayment,
  newPayment,
  type OperationsSide,
  type OperationsWorld,
  type Queries,
  settlePayment,
} from './operations-work.ts'

/** As a competent service does it that has never heard of retries: each write in a transaction, the call between them. */
export async function unprotectedSide({
  url,
  gateway,
  connections,
}: OperationsWorld): Promise<OperationsSide> {
  const pool = new pg.Pool({ connectionString: url, max: connections })
  // end() resolves before the last connection is closed; the server may be stopped first.
  pool.on('error', () => {})
  return {
    async run(key) {
      const payment = newPayment()
      await inTransaction(pool, (tx) => insertPayment(tx, payment))
      const charged = await charge(gateway, payment, { key })
      return await inTransaction(pool, (tx) => settlePayment(tx, payment, charged))
    },
    close: () => pool.end(),
  }
}

async function inTransaction<T>(pool: pg.Pool, work: (tx: Queries) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const value = await work(client)
    await client.query('COMMIT')
    return value
  } finally {
    client.release()
  }
}
