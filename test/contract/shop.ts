import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type Onlyonce, type OnlyonceOptions, onlyonce } from '../../src/index.ts'
import { type PostgresTx, postgres } from '../../src/store/postgres/index.ts'
import type { PostgresOptions } from '../../src/store/postgres/options.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'
import { type Place, POOLER } from '../setup/pooler.ts'
import { type ProxiedDatabase, proxyTo } from '../setup/proxy.ts'
import { waitUntil } from '../setup/wait.ts'

export { PLACES, POOLERS } from '../setup/pooler.ts'
export { waitUntil } from '../setup/wait.ts'

export const SECRET = 'the-secret-of-the-contract-tests-0123456789'

export interface OpenOptions extends Omit<Partial<OnlyonceOptions<PostgresTx>>, 'store'> {
  readonly pool?: pg.Pool
  readonly poolOptions?: pg.PoolConfig
  readonly store?: Omit<PostgresOptions, 'pool' | 'connectionString'>
}

/** A database with a table to have effects on, and doors to it. */
export interface Shop {
  readonly database: FreshDatabase
  /** Looks from outside: a connection of its own that no test fills up. */
  readonly observer: pg.Pool
  /** One more front door on a pool of its own, which is what another process would have. */
  open(options?: OpenOptions): Onlyonce<PostgresTx>
  countEffects(note: string): Promise<number>
  /** Resolves when so many backends of this database wait for a lock. */
  waitForWaiters(count: number): Promise<void>
}

export async function openShop(): Promise<Shop> {
  const database = await freshDatabase()
  const observer = database.direct({ max: 1 })
  await observer.query('CREATE TABLE effects (id bigserial PRIMARY KEY, note text NOT NULL)')
  await observer.query('CREATE TABLE transfers (reference text PRIMARY KEY, amount int NOT NULL)')
  await observer.query('CREATE TABLE balances (name text PRIMARY KEY, amount int NOT NULL)')
  await observer.query("INSERT INTO balances VALUES ('alice', 100), ('bob', 100)")
  return {
    database,
    observer,
    open(options = {}) {
      const { pool, poolOptions, store, ...rest } = options
      const once = onlyonce({
        secret: SECRET,
        // Tests count statements, and let time pass: what runs beside them is started by those that are about it.
        background: false,
        store: postgres({
          pool: pool ?? database.pool({ max: 10, ...poolOptions }),
          pooler: POOLER,
          ...store,
        }),
        ...rest,
      })
      cleanUpLater(() => once.close({ maxMs: 1_000 }))
      return once
    },
    async countEffects(note) {
      const { rows } = await observer.query('SELECT count(*)::int AS count FROM effects WHERE note = $1', [
        note,
      ])
      return rows[0].count
    },
    waitForWaiters: (count) =>
      waitUntil(`${count} backends wait for a lock`, async () => {
        const { rows } = await observer.query(
          `SELECT count(*)::int AS count FROM pg_stat_activity
           WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        )
        return rows[0].count >= count
      }),
  }
}

/** A proxy between the product and its database, and a pool for the product that leads through it. */
export async function openProxy(
  shop: Shop,
  options: { seed?: number; place?: Place; poolOptions?: pg.PoolConfig } = {},
): Promise<Omit<ProxiedDatabase, 'url'> & { pool: pg.Pool }> {
  const { poolOptions, ...rest } = options
  const { url, ...proxied } = await proxyTo(shop.database, { seed: 1, ...rest })
  const pool = shop.database.pool({ connectionString: url, max: 4, ...poolOptions })
  return { ...proxied, pool }
}

/** A transaction of somebody who holds something against the product, on a connection that the product has not. */
export async function beginOutside(shop: Shop): Promise<pg.PoolClient> {
  return await beginOn(shop.database.direct({ max: 1 }), 'BEGIN')
}

/** A transaction of the caller's own for `within`, on a connection of the kind that the product has. */
export async function beginCaller(shop: Shop, begin = 'BEGIN'): Promise<pg.PoolClient> {
  return await beginOn(shop.database.pool({ max: 1 }), begin)
}

async function beginOn(pool: pg.Pool, begin: string): Promise<pg.PoolClient> {
  const client = await pool.connect()
  // Ends with the test, so that a test that failed holds no lock against the next one.
  cleanUpLater(async () => client.release(true))
  await client.query(begin)
  return client
}

export interface Call {
  readonly account: string
  readonly operation: string
  readonly key: string
  readonly input: unknown
}

export function makeCall(changes: Partial<Call> = {}): Call {
  return {
    account: 'acct_1',
    operation: 'transfers.create',
    key: randomUUID(),
    input: { amount: 5 },
    ...changes,
  }
}

/** Leaves one row that is counted by `countEffects(note)`. */
export async function leaveEffect(
  tx: { query(text: string, values?: unknown[]): Promise<unknown> },
  note: string,
): Promise<void> {
  await tx.query('INSERT INTO effects (note) VALUES ($1)', [note])
}

export interface Gate {
  /** Resolves when somebody has reached the gate. */
  readonly reached: Promise<void>
  /** Tells that one is here and waits until the gate is opened. */
  pass(): Promise<void>
  open(): void
}

export function makeGate(): Gate {
  const arrival = makeSignal()
  const opening = makeSignal()
  return {
    reached: arrival.promise,
    pass() {
      arrival.resolve()
      return opening.promise
    },
    open: () => opening.resolve(),
  }
}

function makeSignal(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve: () => resolve() }
}

/** Lets everybody go as soon as `count` have arrived. */
export function makeBarrier(count: number): () => Promise<void> {
  const full = makeSignal()
  let arrived = 0
  return () => {
    arrived += 1
    if (arrived >= count) full.resolve()
    return full.promise
  }
}

/** The error of a promise that has to fail, whatever kind it is. */
// biome-ignore lint/suspicious/noExplicitAny: whatever was thrown is looked into, as a caller's catch does.
export async function catchError(promise: Promise<unknown>): Promise<any> {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error
  }
  throw new Error(`It did not fail but gave ${JSON.stringify(value)}.`)
}

/** Turns a promise that never settles into a failure of the test that says so. */
export async function settleWithin<T>(maxMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Not settled within ${maxMs} ms.`)), maxMs)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
