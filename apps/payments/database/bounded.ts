import { setTimeout as sleep } from 'node:timers/promises'
import type { Queryable } from 'onlyonce'
import type pg from 'pg'
import { LIMITS } from '../limits.ts'
import { Refused } from '../problems.ts'

type Pool = Pick<pg.Pool, 'query'>

/**
 * For statements that a request waits for and that take a moment: one without an answer is given up, and its connection with it. A link on
 * which nothing comes back would otherwise keep the request, and all that wait behind it, until the operating system gives the link up.
 *
 * After one that got no answer the further ones are refused, until the database has answered again: each of them would wait as long.
 *
 * @example
 * const { authenticate } = authenticator(bounded(pool))
 */
export function bounded(pool: Pool, maxMs: number = LIMITS.lookMaxMs): Queryable {
  const looks = looksOf(pool)
  const query = (text: string, values: unknown[] = []) => looks.query(text, values, maxMs)
  return { query: query as Queryable['query'] }
}

/** Whether a database answers is known by pool, and not by who asks. */
const LOOKS = new WeakMap<Pool, Looks>()

function looksOf(pool: Pool): Looks {
  const known = LOOKS.get(pool)
  if (known !== undefined) return known
  const made = new Looks(pool)
  LOOKS.set(pool, made)
  return made
}

class Looks {
  readonly #pool: Pool
  /** The last one that was waited for to its end got no answer. */
  #silent = false
  #probe: Promise<unknown> | null = null

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async query(text: string, values: unknown[], maxMs: number): Promise<unknown> {
    if (this.#silent) await this.#refuseWhileSilent(maxMs)
    return await this.#ask(text, values, maxMs)
  }

  /** A request has the database asked whether it is there, and waits a moment for that. One question at a time is enough for all. */
  async #refuseWhileSilent(maxMs: number): Promise<void> {
    this.#probe ??= this.#ask('SELECT 1', [], maxMs)
      .catch(() => {})
      .finally(() => {
        this.#probe = null
      })
    await Promise.race([this.#probe, sleep(LIMITS.lookAgainWaitMs)])
    if (this.#silent) throw new Refused('unavailable')
  }

  /** In all: the wait for a connection is as much a wait as that for the answer. */
  async #ask(text: string, values: unknown[], maxMs: number): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        this.#silent = true
        // As the driver says it: it is logged, and told as what it is.
        reject(new Error('Query read timeout'))
      }, maxMs)
    })
    const asked = this.#pool.query({ text, values, query_timeout: maxMs } as pg.QueryConfig)
    try {
      const answer = await Promise.race([asked, late])
      this.#silent = false
      return answer
    } finally {
      clearTimeout(timer)
    }
  }
}
