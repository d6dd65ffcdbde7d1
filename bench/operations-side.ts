import pg from 'pg'
import type { Found } from '../src/index.ts'
import type { ChargeResult, Lookup } from '../test/gateway/wire.ts'
import { onlyonce, operation, postgres, reply } from './library.ts'
import {
  charge,
  insertPayment,
  newPayment,
  type OperationsSide,
  type OperationsWorld,
  type Payment,
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

/** The same, so that it happens once. Its steps are serializable, as they are by default. */
export async function operationSide({ url, gateway, connections }: OperationsWorld): Promise<OperationsSide> {
  const pay = operation('payments.create', async (op, payment: Payment) => {
    await op.transaction('payment_created', (tx) => insertPayment(tx, payment))
    const charged = await op.call('charged', {
      call: ({ key, signal }) => charge(gateway, payment, { key, signal }),
      find: async ({ key, signal }) => chargeOf(await gateway.findByKey(key, { signal })),
    })
    return op.transaction('settled', async (tx) => reply(201, await settlePayment(tx, payment, charged)))
  })
  const once = onlyonce({
    store: postgres({ connectionString: url, poolSize: connections }),
    secret: 'a secret for the benchmark, which protects nothing.',
  })
  await once.start()
  return {
    async run(key) {
      const result = await once.run(pay, { account: 'acct_1', key, input: newPayment() })
      if (result.outcome !== 'executed') throw new Error(`It was ${result.outcome}.`)
      return result.value
    },
    close: () => once.close(),
  }
}

function chargeOf(lookup: Lookup): Found<ChargeResult> {
  return lookup as Found<ChargeResult>
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
