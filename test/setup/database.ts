import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { cleanUpLater } from './clean-up.ts'
import { addressWithin, withClient } from './client.ts'
import { POOLER, productUrl } from './pooler.ts'

export { startDurableServer } from './durable-server.ts'

/** Template in use; only possible while a server that was lent runs a vacuum or a backup over it. */
const OBJECT_IN_USE = '55006'
const CLONE_TRIES_MAX = 20
const CLONE_PAUSE_MS = 100

/** A migrated database of one's own. */
export interface FreshDatabase {
  /** What the product is given: in a run behind PgBouncer, the address there. */
  readonly url: string
  /** The same for a program of ours in another process. */
  readonly environment: { readonly DATABASE_URL: string; readonly POOLER: string }
  /** The server itself, whatever is in front of it. */
  readonly serverUrl: string
  readonly name: string
  /** A pool for the product, by `url`. It is ended when the database is dropped. */
  pool(options?: pg.PoolConfig): pg.Pool
  /**
   * A pool for the test itself, by `serverUrl`: whoever looks on, or holds a lock against the product, must not
   * use up the connections that the product has.
   */
  direct(options?: pg.PoolConfig): pg.Pool
  /** Drops the database now; otherwise that happens at the end of the test, or of the test file. */
  drop(): Promise<void>
}

/**
 * Clones the migrated template into a database that nobody else uses.
 *
 * @example
 * const database = await freshDatabase()
 * const pool = database.pool({ max: 5 })
 */
export async function freshDatabase(): Promise<FreshDatabase> {
  const adminUrl = inject('adminUrl')
  const template = inject('template')
  const name = `${template.replace('template', 'test')}_${randomBytes(6).toString('hex')}`
  const serverUrl = addressWithin(adminUrl, name)
  const url = productUrl(serverUrl)
  const pools: pg.Pool[] = []
  let dropping: Promise<void> | undefined
  const drop = () => {
    dropping ??= dropDatabase(adminUrl, name, pools)
    return dropping
  }
  cleanUpLater(drop)
  await cloneDatabase(adminUrl, template, name)
  const poolOf =
    (connectionString: string) =>
    (options: pg.PoolConfig = {}) => {
      const made = openPool(connectionString, options)
      pools.push(made)
      return made
    }
  return {
    url,
    environment: { DATABASE_URL: url, POOLER },
    serverUrl,
    name,
    pool: poolOf(url),
    direct: poolOf(serverUrl),
    drop,
  }
}

async function cloneDatabase(adminUrl: string, template: string, name: string): Promise<void> {
  const text = `CREATE DATABASE ${pg.escapeIdentifier(name)} TEMPLATE ${pg.escapeIdentifier(template)}`
  for (let tries = 1; ; tries++) {
    try {
      await withClient(adminUrl, (client) => client.query(text))
      return
    } catch (error) {
      if ((error as { code?: string }).code !== OBJECT_IN_USE || tries === CLONE_TRIES_MAX) throw error
      await sleep(CLONE_PAUSE_MS)
    }
  }
}

function openPool(url: string, options: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, ...options })
  // Connections that are cut off while idle, which tests do on purpose, must not end the test process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

async function dropDatabase(adminUrl: string, name: string, pools: pg.Pool[]): Promise<void> {
  // Not awaited yet: end() waits for every client that a failed test never gave back. Dropping with FORCE cuts
  // those connections.
  const ended = pools.filter((pool) => !pool.ended).map((pool) => pool.end())
  await withClient(adminUrl, (client) =>
    client.query(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`),
  )
  await Promise.race([Promise.allSettled(ended), sleep(1_000, undefined, { ref: false })])
}
