import type { Queryable } from 'onlyonce'
import type pg from 'pg'
import { LIMITS } from '../limits.ts'
import { Refused } from '../problems.ts'

interface Place {
  active: number
  readonly waiting: (() => void)[]
}

/**
 * What only reads, over connections of its own on which the server ends a statement that takes too long. One account has at most half of
 * them at once; the rest of its reads wait their turn, and a bounded number of them. So an account that asks for much, or for what is slow,
 * keeps neither writes nor the reads of others.
 */
export class Reads {
  readonly #pool: pg.Pool
  readonly #pooled: boolean
  readonly #eachMax: number
  readonly #places = new Map<string, Place>()

  /** `pooled`: behind a pooler a session has no settings of ours, so each read sets its own. */
  constructor(pool: pg.Pool, { pooled }: { readonly pooled: boolean }) {
    this.#pool = pool
    this.#pooled = pooled
    this.#eachMax = Math.max(1, Math.floor(pool.options.max / 2))
  }

  /**
   * The reads of one account.
   *
   * @example
   * await listPayments(reads.of(account), account, filter, null, 20)
   */
  of(account: string): Queryable {
    const query = (text: string, values?: unknown[]) => this.turn(account, () => this.#run(text, values))
    return { query: query as Queryable['query'] }
  }

  /**
   * What reads over connections that are not of this pool, such as the library's own: it takes one of the account's places meanwhile.
   *
   * @example
   * const { state } = await reads.turn(account, () => once.explain({ account, operation, key }))
   */
  async turn<T>(account: string, read: () => Promise<T>): Promise<T> {
    await this.#enter(account)
    try {
      return await read()
    } finally {
      this.#leave(account)
    }
  }

  async #run(text: string, values: unknown[] = []): Promise<pg.QueryResult> {
    if (!this.#pooled) return await this.#pool.query(text, values)
    const client = await this.#pool.connect()
    let broken = true
    try {
      await client.query(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${LIMITS.readMaxMs}`)
      const found = await client.query(text, values)
      await client.query('COMMIT')
      broken = false
      return found
    } finally {
      client.release(broken)
    }
  }

  async #enter(account: string): Promise<void> {
    const place = this.#places.get(account) ?? { active: 0, waiting: [] }
    this.#places.set(account, place)
    if (place.active < this.#eachMax) {
      place.active += 1
      return
    }
    if (place.waiting.length >= LIMITS.readsWaitingMax) throw tooMany()
    // Whoever leaves hands its place over, so `active` stays as it is.
    await new Promise<void>((resolve) => place.waiting.push(resolve))
  }

  #leave(account: string): void {
    const place = this.#places.get(account)!
    const next = place.waiting.shift()
    if (next !== undefined) {
      next()
      return
    }
    place.active -= 1
    if (place.active === 0) this.#places.delete(account)
  }
}

/** Requests of one account at once. */
export function tooMany(): Refused {
  return new Refused('rate_limited', {
    detail: 'Too many requests of this account are under way. Send the same key again after Retry-After.',
    headers: {
      'Retry-After': '1',
      'Stripe-Should-Retry': 'true',
      'Stripe-Rate-Limited-Reason': 'account-concurrency',
    },
  })
}
