import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type Onlyonce, type OnlyonceOptions, onlyonce, type PostgresTx, postgres } from '../../src/index.ts'
import type { PostgresOptions } from '../../src/store/postgres/options.ts'
import { type FaultProxy, startFaultProxy } from '../../src/testing/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../setup/database.ts'

export const SECRET = 'the-secret-of-the-contract-tests-0123456789'
export const POOLERS = ['none', 'transaction'] as const

export interface OpenOptions extends Omit<Partial<OnlyonceOptions<PostgresTx>>, 'store'> {
  readonly pool?: pg.Pool
  readonly pool_options?: pg.PoolConfig
  readonly store?: Omit<PostgresOptions, 'pool' | 'connection_string'>
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
  const observer = database.pool({ max: 1 })
  await observer.query('CREATE TABLE effects (id bigserial PRIMARY KEY, note text NOT NULL)')
  await observer.query('CREATE TABLE transfers (reference text PRIMARY KEY, amount int NOT NULL)')
  await observer.query('CREATE TABLE balances (name text PRIMARY KEY, amount int NOT NULL)')
  await observer.query("INSERT INTO balances VALUES ('alice', 100), ('bob', 100)")
  return {
    database,
    observer,
    open(options = {}) {
      const { pool, pool_options, store, ...rest } = options
      const once = onlyonce({
        secret: SECRET,
        store: postgres({ pool: pool ?? database.pool({ max: 10, ...pool_options }), ...store }),
        ...rest,
      })
      cleanUpLater(() => once.close({ max_ms: 1_000 }))
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

/** A proxy in front of the shop's server, and a pool that goes through it. */
export async function openProxy(
  shop: Shop,
  options: { seed?: number; pool_options?: pg.PoolConfig } = {},
): Promise<{ proxy: FaultProxy; pool: pg.Pool }> {
  const { hostname, port } = new URL(shop.database.url)
  const proxy = await startFaultProxy({
    target: { host: hostname, port: Number(port) },
    seed: options.seed ?? 1,
  })
  cleanUpLater(() => proxy.close())
  const pool = shop.database.pool({
    connectionString: proxy.url(shop.database.url),
    max: 4,
    ...options.pool_options,
  })
  return { proxy, pool }
}

/** A connection with an open transaction of the test's own. */
export async function beginOutside(shop: Shop, begin = 'BEGIN'): Promise<pg.PoolClient> {
  const client = await shop.database.pool({ max: 1 }).connect()
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

/** Looks again and again, a bounded time, until a fact is there. */
export async function waitUntil(
  what: string,
  isTrue: () => Promise<boolean> | boolean,
  max_ms = 20_000,
): Promise<void> {
  const until = performance.now() + max_ms
  while (performance.now() < until) {
    if (await isTrue()) return
    // Leaves the two processors to those whose progress is awaited.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error(`Waited ${max_ms} ms in vain until: ${what}.`)
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
export async function settleWithin<T>(max_ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Not settled within ${max_ms} ms.`)), max_ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
