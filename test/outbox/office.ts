import type pg from 'pg'
import { expect } from 'vitest'
import type { Outbox, OutboxEvent, Relay } from '../../src/outbox/index.ts'
import { waitUntil } from '../contract/shop.ts'

/** Runs a relay until it has nothing more to do. */
export async function runDry(...workers: readonly Relay[]): Promise<void> {
  await Promise.all(
    workers.map(async (worker) => {
      while ((await worker.runOnce()).more);
      await worker.drain()
    }),
  )
}

/** Runs relays again and again until something is true. */
export async function runUntil(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
  ...workers: readonly Relay[]
): Promise<void> {
  await waitUntil(what, async () => {
    await runDry(...workers)
    return await isTrue()
  })
}

/** Emits in a transaction of its own. */
export async function emitAlone(
  pool: pg.Pool,
  emit: Outbox['emit'],
  events: Parameters<Outbox['emit']>[1],
  begin = 'BEGIN',
): Promise<readonly string[]> {
  return await inTransaction(pool, (tx) => emit(tx, events), begin)
}

export async function inTransaction<T>(
  pool: pg.Pool,
  work: (tx: pg.PoolClient) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const tx = await pool.connect()
  let failure: Error | undefined
  try {
    await tx.query(begin)
    const value = await work(tx)
    await tx.query('COMMIT')
    return value
  } catch (error) {
    failure = error as Error
    await tx.query('ROLLBACK').then(
      () => {
        failure = undefined
      },
      () => {},
    )
    throw error
  } finally {
    tx.release(failure)
  }
}

/** What was delivered of each aggregate is 1, 2, 3, … */
export function expectOrder(got: readonly OutboxEvent[]): void {
  const last = new Map<string, number>()
  for (const { account, aggregate, sequence } of got) {
    if (aggregate === null) continue
    const name = `${account} ${aggregate}`
    expect({ name, sequence }).toEqual({ name, sequence: (last.get(name) ?? 0) + 1 })
    last.set(name, sequence!)
  }
}
