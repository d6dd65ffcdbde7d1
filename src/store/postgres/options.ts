import type { Pool } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../../core/options.ts'

/** How to reach the database, and within which bounds. */
export interface PostgresOptions {
  /**
   * Your own pool; it stays yours and is not ended by `close`. A pool of n (above two) runs n-1 transactions at once.
   *
   * @default none: pass this or `connectionString`
   */
  readonly pool?: Pool
  /**
   * Or a connection string, from which a pool is made that `close` ends.
   *
   * @default none: pass this or `pool`
   */
  readonly connectionString?: string
  /**
   * Connections of the pool that is made from `connectionString`. Above two, one of them stays free for lookups.
   *
   * @default 10
   */
  readonly poolSize?: number
  /**
   * The schema that holds the tables.
   *
   * @default 'onlyonce'
   */
  readonly schema?: string
  /**
   * `apply` installs and upgrades the tables, `verify` only checks them (for a role without DDL rights).
   *
   * @default 'apply'
   */
  readonly migrate?: 'apply' | 'verify'
  /**
   * `transaction` behind PgBouncer's transaction mode: no named statements, nothing assumed of a session.
   *
   * @default 'none'
   */
  readonly pooler?: 'none' | 'transaction'
  /**
   * Prepares statements of the work that come again and again under a name: faster, but PostgreSQL then keeps the
   * parameter types that it inferred at first, also when a column changes its type or `search_path` differs.
   *
   * @default false
   */
  readonly prepareWork?: boolean
  /**
   * Lets `currentTx()` of `onlyonce/orm` find the transaction whose function runs. It costs time for every promise: see docs/guides/orms.md.
   *
   * @default false
   */
  readonly currentTx?: boolean
  /** @default 3_000 */
  readonly lockWaitMaxMs?: number
  /** @default 10_000 */
  readonly idleInTransactionMaxMs?: number
  /** @default 30_000 */
  readonly transactionMaxMs?: number
  /** @default 10_000 */
  readonly statementMaxMs?: number
  /** @default 10_000 */
  readonly connectionWaitMaxMs?: number
  /** @default 30_000 */
  readonly settleMaxMs?: number
  /**
   * How long a start may look for records that name a key which this process lacks.
   *
   * @default 60_000
   */
  readonly keyCheckMaxMs?: number
}

export interface PostgresSettings {
  readonly schema: string
  readonly migrate: 'apply' | 'verify'
  readonly pooler: 'none' | 'transaction'
  readonly prepareWork: boolean
  readonly currentTx: boolean
  readonly lockWaitMaxMs: number
  readonly idleInTransactionMaxMs: number
  readonly transactionMaxMs: number
  readonly statementMaxMs: number
  readonly connectionWaitMaxMs: number
  readonly settleMaxMs: number
  readonly keyCheckMaxMs: number
}

const NAMES: OptionNames<PostgresOptions> = {
  pool: true,
  connectionString: true,
  poolSize: true,
  schema: true,
  migrate: true,
  pooler: true,
  prepareWork: true,
  currentTx: true,
  lockWaitMaxMs: true,
  idleInTransactionMaxMs: true,
  transactionMaxMs: true,
  statementMaxMs: true,
  connectionWaitMaxMs: true,
  settleMaxMs: true,
  keyCheckMaxMs: true,
}

/** Checks the options once, at the door. */
export function checkOptions(options: PostgresOptions): PostgresSettings {
  refuseUnknown('postgres()', options, NAMES)
  if ((options.pool === undefined) === (options.connectionString === undefined)) {
    refuse('Pass either pool or connectionString to postgres().')
  }
  if (options.pool !== undefined && !isPool(options.pool)) {
    refuse(
      'pool must be a pool of pg, such as new pg.Pool({ … }); a client has one connection, and cannot be used.',
    )
  }
  const { poolSize } = options
  if (poolSize !== undefined && (!Number.isSafeInteger(poolSize) || poolSize < 1)) {
    refuse('poolSize must be a whole number from 1.')
  }
  return {
    schema: checkSchema(options.schema ?? 'onlyonce'),
    migrate: oneOf('migrate', options.migrate ?? 'apply', ['apply', 'verify']),
    pooler: oneOf('pooler', options.pooler ?? 'none', ['none', 'transaction']),
    prepareWork: options.prepareWork === true && options.pooler !== 'transaction',
    currentTx: options.currentTx === true,
    lockWaitMaxMs: milliseconds(options, 'lockWaitMaxMs'),
    idleInTransactionMaxMs: milliseconds(options, 'idleInTransactionMaxMs'),
    transactionMaxMs: milliseconds(options, 'transactionMaxMs'),
    statementMaxMs: milliseconds(options, 'statementMaxMs'),
    connectionWaitMaxMs: milliseconds(options, 'connectionWaitMaxMs'),
    settleMaxMs: milliseconds(options, 'settleMaxMs'),
    keyCheckMaxMs: milliseconds(options, 'keyCheckMaxMs'),
  }
}

/** By its shape: a pool may be of another copy of pg, or of a class that extends it. */
function isPool(pool: Partial<Pool> | null): boolean {
  return (
    typeof pool?.connect === 'function' &&
    typeof pool.on === 'function' &&
    typeof pool.idleCount === 'number' &&
    typeof pool.options?.max === 'number'
  )
}

/** A plain identifier: it stands in the text of every statement. */
export function checkSchema(schema: string): string {
  if (typeof schema !== 'string' || !/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    refuse(
      `schema must be a plain lower-case identifier of at most 63 characters, got ${JSON.stringify(schema) ?? 'none'}.`,
    )
  }
  return schema
}

type Bound = Extract<keyof PostgresSettings, `${string}Ms`>

function milliseconds(options: PostgresOptions, name: Bound): number {
  const value = options[name] ?? LIMITS[name]
  if (!Number.isSafeInteger(value) || value < 1 || value > 2_147_483_647) {
    refuse(`${name} must be a whole number of milliseconds from 1 to 2147483647.`)
  }
  return value
}

export function oneOf<T extends string>(name: string, value: T, allowed: readonly T[]): T {
  if (!allowed.includes(value)) refuse(`${name} must be one of ${allowed.join(', ')}.`)
  return value
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
