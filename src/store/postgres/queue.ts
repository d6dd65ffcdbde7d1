import type { Pool } from 'pg'
import { acrossCopies } from '../../core/copies.ts'

/** Who waits for a connection of a pool, and how many have got one. */
export interface ConnectionQueue {
  /** Callers that wait now: in the pool's own queue, and in those that stores keep in front of it. */
  readonly waiting: number
  /** Connections that were lent so far. */
  readonly lent: number
}

class PoolQueue implements ConnectionQueue {
  lent = 0
  readonly #pool: Pool
  readonly #inFront: (() => number)[] = []

  constructor(pool: Pool) {
    this.#pool = pool
    pool.on('acquire', () => {
      this.lent += 1
    })
  }

  get waiting(): number {
    return this.#inFront.reduce((sum, count) => sum + count(), this.#pool.waitingCount)
  }

  add(count: () => number): void {
    this.#inFront.push(count)
  }
}

const queues = acrossCopies('pool_queues', () => new WeakMap<Pool, PoolQueue>())

/** The queue of a pool: one for all that look at it. */
export function queueOf(pool: Pool): ConnectionQueue {
  return ownQueue(pool)
}

/** Counts callers that wait in front of the pool, and are not in its own queue yet. */
export function waitInFront(pool: Pool, count: () => number): void {
  ownQueue(pool).add(count)
}

function ownQueue(pool: Pool): PoolQueue {
  const known = queues.get(pool)
  if (known !== undefined) return known
  const made = new PoolQueue(pool)
  queues.set(pool, made)
  return made
}
