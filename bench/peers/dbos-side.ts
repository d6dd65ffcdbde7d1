import {
  charge,
  insertPayment,
  newPayment,
  type OperationsSide,
  type OperationsWorld,
  type Payment,
  type Queries,
  settlePayment,
} from '../operations-work.ts'
import { installPeer } from './install.ts'

/** As much of DBOS Transact as is used here: checking types needs no installed peer. */
interface Dbos {
  setConfig(config: Readonly<Record<string, unknown>>): void
  launch(): Promise<void>
  shutdown(): Promise<void>
  registerWorkflow<Args extends unknown[], T>(
    work: (...args: Args) => Promise<T>,
    options: { readonly name: string },
  ): (...args: Args) => Promise<T>
  withNextWorkflowID<T>(id: string, run: () => Promise<T>): Promise<T>
  runStep<T>(step: () => Promise<T>, options: { readonly name: string }): Promise<T>
}

/** Its transactions over postgres.js, which prepares statements by itself. */
interface DataSource {
  readonly client: {
    unsafe(text: string, values: unknown[], options: { prepare: boolean }): Promise<unknown>
  }
  runTransaction<T>(work: () => Promise<T>, options: { readonly name: string }): Promise<T>
}

/**
 * The same unit of work as a workflow of DBOS Transact: the key is the id of the workflow, each write is a transaction that carries
 * its own checkpoint, and the call is a step.
 *
 * As fast as it can be set up without giving up what it promises: called directly, not through a queue; nothing traced, nothing
 * logged, no admin server; as many connections as the other sides for its own tables, and as many again for the transactions.
 * Three times as many were no faster.
 *
 * Version 4, the newest whose transactions are to be had for a PostgreSQL driver (that for node-postgres is not published; this is
 * the one for postgres.js). Version 5.3.0 with the writes as plain steps, which may happen twice, was as fast: 1.06 times the rate
 * in the median of five noisy rounds, with as many commits.
 */
export async function dbosSide({ url, gateway, connections }: OperationsWorld): Promise<OperationsSide> {
  const peer = installPeer('dbos')
  // It reads its call stack at every step, and the loader that runs this file has made stacks expensive.
  process.setSourceMapsEnabled(false)
  const { DBOS } = peer('@dbos-inc/dbos-sdk') as { DBOS: Dbos }
  const { PostgresDataSource } = peer('@dbos-inc/postgres-datasource') as {
    PostgresDataSource: new (name: string, options: Readonly<Record<string, unknown>>) => DataSource
  }
  const { hostname, port, pathname, username, password } = new URL(url)
  const source = new PostgresDataSource('bench', {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    max: connections,
    onnotice: () => {},
  })
  const tx: Queries = { query: (text, values) => source.client.unsafe(text, values, { prepare: true }) }
  const pay = DBOS.registerWorkflow(
    async (payment: Payment, key: string) => {
      await source.runTransaction(() => insertPayment(tx, payment), { name: 'payment_created' })
      const charged = await DBOS.runStep(() => charge(gateway, payment, { key }), { name: 'charged' })
      return await source.runTransaction(() => settlePayment(tx, payment, charged), { name: 'settled' })
    },
    { name: 'pay' },
  )
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    systemDatabasePoolSize: connections,
    logLevel: 'error',
    runAdminServer: false,
    tracingEnabled: false,
  })
  await DBOS.launch()
  return {
    run: (key) => DBOS.withNextWorkflowID(key, () => pay(newPayment(), key)),
    close: () => DBOS.shutdown(),
  }
}
