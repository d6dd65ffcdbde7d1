/**
 * Transactions that an ORM leads, for `once.within`. Each gives the one method that is needed of a transaction. The types ask for what is used of an ORM, so that none
 * of them is imported.
 */
import { OnlyonceError } from '../core/errors.ts'
import type { Queryable } from '../store/contract.ts'

/** What is used of the client in an interactive transaction of Prisma. */
export interface PrismaTransaction {
  readonly $queryRawUnsafe: (text: string, ...values: unknown[]) => PromiseLike<unknown>
}

/**
 * @example
 * await prisma.$transaction(async (tx) => {
 *   const result = await once.within(fromPrisma(tx), { account, operation, key, input }, () => createTransfer(tx, input))
 * })
 */
export function fromPrisma(tx: PrismaTransaction): Queryable {
  return {
    query: async (text, values = []) => ({ rows: (await tx.$queryRawUnsafe(text, ...values)) as unknown[] }),
  }
}

/** What is used of a transaction of Drizzle, with the drivers pg and postgres.js. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>
}

/**
 * @example
 * await db.transaction(async (tx) => {
 *   const result = await once.within(fromDrizzle(tx), { account, operation, key, input }, () => createTransfer(tx, input))
 * })
 */
export function fromDrizzle(tx: DrizzleTransaction): Queryable {
  return {
    async query(text, values = []) {
      // What Drizzle makes of its own `sql` before it sends it. Its `sql.raw` takes no values.
      const query = { toQuery: () => ({ sql: text, params: values }) }
      const result = await tx.execute({ getSQL: () => query } as never)
      return Array.isArray(result) ? { rows: result } : (result as { rows: unknown[] })
    },
  }
}

/** What is used of a transaction of Kysely. */
export interface KyselyTransaction {
  executeQuery(query: never): PromiseLike<{ readonly rows: unknown[] }>
}

/**
 * @example
 * await db.transaction().execute(async (tx) => {
 *   const result = await once.within(fromKysely(tx), { account, operation, key, input }, () => createTransfer(tx, input))
 * })
 */
export function fromKysely(tx: KyselyTransaction): Queryable {
  return {
    async query(text, values = []) {
      // As `CompiledQuery.raw` makes it.
      const node = { kind: 'RawNode', sqlFragments: [text], parameters: [] }
      const query = { sql: text, parameters: values, query: node, queryId: { queryId: 'onlyonce' } }
      return { rows: (await tx.executeQuery(query as never)).rows }
    },
  }
}

/** What is used of a transaction of Knex. */
export interface KnexTransaction {
  readonly client: { acquireConnection(): Promise<unknown> }
}

/**
 * @example
 * await knex.transaction(async (tx) => {
 *   const result = await once.within(fromKnex(tx), { account, operation, key, input }, () => createTransfer(tx, input))
 * })
 */
export function fromKnex(tx: KnexTransaction): Queryable {
  return {
    async query(text, values) {
      // The connection of the transaction, which stays with it. `raw` has another way to write parameters.
      const connection = (await tx.client.acquireConnection()) as Queryable
      return await connection.query(text, values)
    },
  }
}

/** What is used of the `EntityManager` that TypeORM gives to the function of a transaction. */
export interface TypeormManager {
  readonly queryRunner?:
    | {
        query(
          text: string,
          values: unknown[] | undefined,
          structured: true,
        ): Promise<{ readonly records: unknown[] }>
      }
    | undefined
}

/**
 * @example
 * await dataSource.transaction(async (manager) => {
 *   const result = await once.within(fromTypeorm(manager), { account, operation, key, input }, () => createTransfer(manager, input))
 * })
 */
export function fromTypeorm({ queryRunner }: TypeormManager): Queryable {
  if (queryRunner === undefined) throw new OnlyonceError('transaction_required')
  return {
    query: async (text, values) => ({ rows: (await queryRunner.query(text, values, true)).records }),
  }
}
