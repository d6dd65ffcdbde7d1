import { createHash } from 'node:crypto'
import type { Pool } from 'pg'
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import { isOfClass } from '../core/thrown.ts'
import { classify } from '../store/postgres/classify.ts'
import { forget, giveBack, peek, sweep, type Table, take } from './sql.ts'

/** What came of some takes of equal size from one window. */
export interface Taken {
  /** How many of them fitted; those who came first. */
  readonly granted: number
  /** Points that were left before them. */
  readonly leftBefore: number
  readonly resetMs: number
  /** Which window it was: points can be given back to it, and to no other. */
  readonly window: string
}

interface Row {
  readonly points: number
  readonly expire: string
  readonly left_ms: string
}

/** An answer of the limiter that also names its window. */
class WindowRes extends RateLimiterRes {
  readonly window: string

  constructor(limit: number, changed: number, { points, expire, left_ms: leftMs }: Row) {
    super(Math.max(0, limit - points), Number(leftMs), points, points === changed)
    this.window = expire
  }
}

interface WindowOptions {
  readonly pool: Pool
  readonly schema: string
  readonly table: Table
  /** Names the limiter and the window in the rows. */
  readonly prefix: string
  readonly points: number
  readonly perMs: number
  /** Behind a pooler that does not carry named statements they go without a name. */
  readonly named: boolean
  /** For how long a statement that collided is repeated. */
  readonly waitMaxMs: number
}

/**
 * Fixed windows of rate-limiter-flexible, with statements of our own in place of three of its. Its own go by the clock of
 * the process, so that two hosts whose clocks differ by a second end each other's windows of a second; they take the
 * points of refused tries too; and what is given back with `reward` after the end of a window makes the next one larger.
 * The methods that begin with an underscore are those that each of its stores brings: see its RateLimiterStoreAbstract.
 */
export class Windows extends RateLimiterPostgres {
  readonly #pool: Pool
  readonly #perMs: number
  readonly #waitMaxMs: number
  readonly #statements: Readonly<Record<keyof typeof STATEMENTS, Statement>>

  constructor(options: WindowOptions) {
    const { pool, schema, table, prefix, points, perMs, waitMaxMs } = options
    super({
      storeClient: pool,
      storeType: 'pool',
      schemaName: schema,
      tableName: table,
      tableCreated: true,
      keyPrefix: prefix,
      points,
      duration: perMs / 1_000,
      // Every five minutes, by a timer that keeps no process alive.
      clearExpiredByTimeout: true,
    })
    this.#pool = pool
    this.#perMs = perMs
    this.#waitMaxMs = waitMaxMs
    this.#statements = statementsOf(options)
  }

  /** Takes as many of `count` times `each` points as fit, in one statement. */
  async take(key: string, each: number, count: number): Promise<Taken> {
    const asked = each * count
    const { consumedPoints, msBeforeNext, window } = await this.#consume(key, asked, each)
    const leftBefore = Math.max(0, this.points - (consumedPoints - asked))
    const granted = Math.min(count, Math.floor(leftBefore / each))
    return { granted, leftBefore, resetMs: msBeforeNext, window }
  }

  async giveBack(key: string, points: number, window: string): Promise<void> {
    await this.reward(key, points, { window })
  }

  /** That there was too little is rejected there; errors are no answers. */
  async #consume(key: string, asked: number, each: number): Promise<WindowRes> {
    try {
      return (await this.consume(key, asked, { each })) as WindowRes
    } catch (error) {
      if (isOfClass(error, WindowRes)) return error
      throw error
    }
  }

  async _upsert(
    key: string,
    points: number,
    _ms: number,
    _force: boolean,
    options: { readonly each?: number; readonly window?: string },
  ): Promise<{ rows: Row[] }> {
    if (options.window === undefined) {
      const { each = points } = options
      return await this.#run('take', [key, each, points / each, this.points, this.#perMs])
    }
    const { rows } = await this.#run('giveBack', [key, -points, options.window])
    // The window is over: there is nothing to give back to.
    return { rows: rows.length > 0 ? rows : [{ points: 0, expire: options.window, left_ms: '0' }] }
  }

  async _get(key: string): Promise<{ rows: Row[] } | null> {
    const found = await this.#run('peek', [key])
    return found.rows.length === 0 ? null : found
  }

  async _delete(key: string): Promise<boolean> {
    const { rowCount } = await this.#run('forget', [key])
    return (rowCount ?? 0) > 0
  }

  _getRateLimiterRes(_key: string, changed: number, result: { rows: Row[] }): WindowRes {
    return new WindowRes(this.points, changed, result.rows[0]!)
  }

  /** In short transactions, until nothing old is left. Best effort: what is left is removed next time. */
  async clearExpired(): Promise<void> {
    try {
      for (let batches = 0; batches < LIMITS.limitSweepsMax; batches += 1) {
        const { rowCount } = await this.#run('sweep', [LIMITS.limitSweepMax])
        if ((rowCount ?? 0) < LIMITS.limitSweepMax) return
      }
    } catch {}
  }

  /**
   * Where transactions are serializable by default, two that take from one window collide. Nothing has happened then, and it is
   * no trouble of the store: taken for one, it would open the limit just when many are at it.
   */
  async #run(name: keyof typeof STATEMENTS, values: unknown[]) {
    const deadline = new Deadline(this.#waitMaxMs)
    for (let tries = 0; ; tries += 1) {
      try {
        return await this.#pool.query<Row>({ ...this.#statements[name], values })
      } catch (error) {
        if (classify(error) !== 'collision' || !(await deadline.backOff(tries))) throw error
      }
    }
  }
}

interface Statement {
  readonly text: string
  readonly name?: string
}

/** Named by their text: two schemas on one pool have two statements, and a name has room for 63 characters. */
function statementsOf({ schema, table, named }: WindowOptions) {
  const statements = Object.entries(STATEMENTS).map(([name, make]): [string, Statement] => {
    const text = make(schema, table)
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 16)
    return [name, named ? { text, name: `onlyonce_limits_${digest}` } : { text }]
  })
  return Object.fromEntries(statements) as Record<keyof typeof STATEMENTS, Statement>
}

const STATEMENTS = { take, giveBack, peek, forget, sweep } as const
