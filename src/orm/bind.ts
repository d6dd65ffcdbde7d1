/**
 * ORMs that are set up once, with all that they know of the entities, and are told the transaction at each call. The types ask for what is used of them, so that
 * none of them is imported.
 */
import type pg from 'pg'
import { OnlyonceError } from '../core/errors.ts'
import type { PostgresTx } from '../store/postgres/index.ts'
import { poolOf, poolWith } from './pool.ts'

/** What is used of TypeORM's `DataSource`. */
export interface TypeormDataSource<Manager> {
  createQueryRunner(): { readonly manager: Manager }
}

/**
 * An `EntityManager` of TypeORM on the running transaction. `manager.transaction` is a savepoint, and two of them run one after the other.
 *
 * @example
 * const manager = typeormManager(tx, dataSource)
 * await manager.save(Transfer, input)
 */
export function typeormManager<Manager extends object>(
  tx: PostgresTx,
  dataSource: TypeormDataSource<Manager>,
): Manager {
  const manager = runnerOn(tx, dataSource).manager as Manager & {
    transaction: (...given: never[]) => unknown
  }
  // On one query runner TypeORM puts two transactions into each other. So each has its own here, as each has where the data source begins it.
  manager.transaction = (...given) => {
    const inner = runnerOn(tx, dataSource).manager as typeof manager
    return inner.transaction(...given)
  }
  return manager
}

function runnerOn<Manager>(tx: PostgresTx, dataSource: TypeormDataSource<Manager>) {
  let client: Promise<pg.PoolClient> | null = null
  const connect = () => {
    client ??= poolOf(tx).connect()
    return client
  }
  return Object.assign(dataSource.createQueryRunner(), { connect })
}

/** What is used of Sequelize 6. */
export interface SequelizeLike<Transaction> {
  readonly constructor: { readonly Transaction: new (sequelize: never, options: never) => Transaction }
  readonly connectionManager: { getTypeParser(...given: never[]): unknown }
}

/**
 * Runs work with a transaction of Sequelize that leads to the running transaction: pass it to every call, as `{ transaction }`. All of it is one savepoint, and a
 * `sequelize.transaction({ transaction }, …)` inside of it another. It has no `afterCommit`: nothing is committed when it ends.
 *
 * @example
 * await sequelizeTransaction(tx, sequelize, (transaction) => Transfer.create(input, { transaction }))
 */
export async function sequelizeTransaction<Transaction extends object, T>(
  tx: PostgresTx,
  sequelize: object,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  const {
    connectionManager,
    constructor: { Transaction: Kind },
  } = sequelize as unknown as SequelizeLike<Transaction>
  const types = { getTypeParser: connectionManager.getTypeParser.bind(connectionManager) }
  return await nested(poolWith(tx, types as unknown as pg.CustomTypesConfig), async (connection) => {
    const bound = Object.assign(new Kind(sequelize as never, {} as never), {
      connection,
      afterCommit: refuseHook,
      savepoints: new Savepoints(),
      finished: undefined as string | undefined,
    })
    try {
      return await work(bound)
    } finally {
      // Sequelize refuses what comes later.
      bound.finished = 'commit'
    }
  })
}

/** Sequelize puts two savepoints at once into each other, and one undoes the other: the second is refused. */
class Savepoints extends Array<{ readonly finished?: unknown }> {
  override push(...made: { readonly finished?: unknown }[]): number {
    if (this.some(({ finished }) => finished === undefined))
      throw new OnlyonceError('nested_transaction_busy')
    return super.push(...made)
  }
}

function refuseHook(): never {
  throw new OnlyonceError('option_invalid', { detail: NO_HOOKS })
}

const NO_HOOKS =
  'This transaction is a part of the protected request, and not committed when it ends. Emit an event or stage a job in place of afterCommit.'

/** What is used of the `EntityManager` of MikroORM 6. */
export interface MikroormManager {
  fork(): this
  flush(): Promise<void>
  getConnection(): unknown
  setTransactionContext(context: never): void
}

/**
 * Runs work with a fork of MikroORM's `EntityManager` on the running transaction, and flushes it. All of it is one savepoint, and `em.transactional` inside of it
 * another.
 *
 * @example
 * await mikroormTransaction(tx, orm.em, async (em) => {
 *   em.create(Transfer, input)
 * })
 */
export async function mikroormTransaction<Manager extends MikroormManager, T>(
  tx: PostgresTx,
  manager: Manager,
  work: (em: Manager) => Promise<T>,
): Promise<T> {
  const { client } = (manager.getConnection() as { getKnex(): { readonly client: KnexClient } }).getKnex()
  const pool = poolWith(tx, client.connectionSettings?.types)
  const bound: KnexClient = Object.create(client, {
    acquireConnection: { value: () => pool.connect() },
    releaseConnection: { value: async (lent: pg.PoolClient) => lent.release() },
  })
  const context = await new Promise<KnexTransaction>((resolve, reject) => {
    bound.transaction(resolve, { doNotRejectOnRollback: true }).catch(reject)
  })
  const em = manager.fork()
  em.setTransactionContext(context as never)
  try {
    const value = await work(em)
    await em.flush()
    await context.commit()
    await context.executionPromise
    return value
  } catch (error) {
    await context.rollback()
    throw error
  }
}

/** What is used of knex, which MikroORM 6 is built on. */
interface KnexClient {
  readonly connectionSettings?: { readonly types?: pg.CustomTypesConfig }
  transaction(container: (context: KnexTransaction) => void, options: object): Promise<unknown>
}

interface KnexTransaction {
  commit(): Promise<unknown>
  rollback(): Promise<unknown>
  readonly executionPromise: Promise<unknown>
}

async function nested<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const value = await work(client)
    await client.query('COMMIT')
    return value
  } finally {
    // Undoes what was not committed.
    client.release()
  }
}
