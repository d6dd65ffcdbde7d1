import type { Pool, PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { Deadline } from '../../core/retry.ts'
import { memberOf } from '../../core/thrown.ts'
import { cannotNow, classify, isBroken } from './classify.ts'
import { type Bound, bind, type FlushResult, flush, statement } from './flush.ts'
import { Habits } from './habits.ts'
import { hearPool } from './hear.ts'
import { inTime, noAnswer } from './in-time.ts'
import type { PostgresSettings } from './options.ts'
import { waitInFront } from './queue.ts'
import { Slots } from './slots.ts'
import { READ_BOUNDS, setIdle, setLockWait, setLockWaitAlone } from './sql/session.ts'
import { troubleDetail } from './trouble.ts'
import { isIdle, unsupported, watchStatus } from './wire.ts'

const readBounds = statement(READ_BOUNDS)
const WAIT_A_MOMENT = bind(statement(setLockWaitAlone(LIMITS.lockWaitLastMs)))

/** The pool, seen through our bounds: every wait ends, and no connection is left in doubt. */
export class Connections {
  readonly settings: PostgresSettings
  /** Named statements need a session that stays the same. */
  readonly named: boolean
  readonly size: number
  /** Transactions at once. One connection stays free for lookups wherever there are more than two. */
  readonly slots: Slots
  /** How many transactions may wait for another's record at once; the last connection is for bystanders. */
  readonly waitersMax: number
  readonly habits = new Habits()
  /** Transactions whose record is on its way: each may turn out to wait for another's. */
  finishing = 0
  readonly #pool: Pool
  readonly #prefix = new WeakMap<PoolClient, readonly Bound[]>()
  readonly #setLockWait: Bound
  readonly #setIdle: Bound
  readonly #wait: Bound

  constructor(pool: Pool, settings: PostgresSettings) {
    hearPool(pool)
    this.#pool = pool
    this.settings = settings
    this.named = settings.pooler === 'none'
    this.size = pool.options.max
    this.waitersMax = this.size - 1
    this.#setLockWait = bind(statement(setLockWait(settings.lockWaitMaxMs)))
    this.#wait = bind(statement(setLockWaitAlone(settings.lockWaitMaxMs)))
    this.#setIdle = bind(statement(setIdle(settings.idleInTransactionMaxMs)))
    this.slots = new Slots({
      size: this.size > 2 ? this.size - 1 : this.size,
      waitingMax: LIMITS.waitingMax,
      waitMaxMs: settings.connectionWaitMaxMs,
    })
    waitInFront(pool, () => this.slots.waiting)
  }

  /**
   * Statements of our own on any connection, in one flush and in bounded time. They are safe to repeat, and a
   * lookup may collide with others too, where transactions are serializable by default.
   */
  run(...bounds: readonly Bound[]): Promise<FlushResult> {
    return this.repeat(() => this.use((client) => flush(client, bounds, this.named)))
  }

  /**
   * The same, with a bound on waiting for locks. Up to their Sync the statements of a flush are one
   * transaction, so the bound ends with them.
   */
  runBounded(bound: Bound): Promise<FlushResult> {
    return this.repeat(() => this.use((client) => this.#runBounded(client, bound)))
  }

  /** Runs something of our own again when it collided, or when its session had lost its statements. */
  async repeat<T>(run: () => Promise<T>): Promise<T> {
    const deadline = new Deadline(this.settings.statementMaxMs)
    for (let tries = 0; ; tries += 1) {
      try {
        return await run()
      } catch (error) {
        const lostStatements = error instanceof OnlyonceError && error.code === 'statement_not_prepared'
        // Each time one connection is thrown away that has lost its statements; all of them may have.
        const again = lostStatements ? tries <= this.size : classify(error) === 'collision'
        const triesMax = Math.max(LIMITS.attemptsMax, this.size)
        if (!again || tries > triesMax || !(await deadline.backOff(tries))) throw error
      }
    }
  }

  /** A caller that would take the last connection waits but a moment for a lock, as in a transaction: others need it. */
  async #runBounded(client: PoolClient, bound: Bound): Promise<FlushResult> {
    this.finishing += 1
    try {
      const wait = this.finishing > this.waitersMax ? WAIT_A_MOMENT : this.#wait
      const bounds = this.prefix(client).includes(this.#setLockWait) || wait === WAIT_A_MOMENT ? [wait] : []
      return await flush(client, [...bounds, bound], this.named)
    } finally {
      this.finishing -= 1
    }
  }

  /** Lends a connection for a short while, after which it is ended; what fails there is translated. */
  async use<T>(
    borrow: (client: PoolClient) => Promise<T>,
    maxMs: number = this.settings.statementMaxMs,
  ): Promise<T> {
    const client = await this.acquire()
    let failure: Error | undefined
    try {
      return await inTime(client, maxMs, () => borrow(client))
    } catch (error) {
      if (isBroken(error)) failure = error as Error
      throw this.translate(error)
    } finally {
      this.release(client, failure)
    }
  }

  /**
   * A connection, checked once for what we need of it, and every time for a transaction that other code left open
   * on it: what we write there would be theirs to undo.
   */
  acquire(): Promise<PoolClient> {
    return this.#connect().then((client) =>
      isIdle(client) && this.#prefix.has(client) ? client : this.#check(client),
    )
  }

  async #check(given: PoolClient): Promise<PoolClient> {
    let client = await this.#watched(given)
    for (let tries = 0; !isIdle(client); tries += 1) {
      this.release(client, new Error('it was given back with an open transaction'))
      if (tries >= this.size) throw new OnlyonceError('pool_exhausted', { detail: OPEN_TRANSACTIONS })
      client = await this.#watched(await this.#connect())
    }
    if (this.#prefix.has(client)) return client
    await this.#orRelease(client, this.#meet(client))
    return client
  }

  /** A client of an older pg has to be asked whether a transaction is open on it, the first time. */
  async #watched(client: PoolClient): Promise<PoolClient> {
    const problem = unsupported(client)
    if (problem !== null) {
      this.release(client)
      throw new OnlyonceError('option_invalid', { detail: problem })
    }
    const { statementMaxMs } = this.settings
    await this.#orRelease(
      client,
      inTime(client, statementMaxMs, () => watchStatus(client)),
    )
    return client
  }

  async #orRelease(client: PoolClient, use: Promise<void>): Promise<void> {
    try {
      await use
    } catch (error) {
      this.release(client, error as Error)
      throw this.translate(error)
    }
  }

  release(client: PoolClient, failure?: Error): void {
    losers.delete(client)
    client.release(failure)
  }

  /** Calls back when the connection of this client is lost before it is released. */
  onLost(client: PoolClient, tell: (error: unknown) => void): void {
    losers.set(client, tell)
  }

  /** What has to follow BEGIN on this connection for its waits to be bounded; nothing if they are already. */
  prefix(client: PoolClient): readonly Bound[] {
    return this.#prefix.get(client) ?? []
  }

  translate(error: unknown): unknown {
    if (error instanceof OnlyonceError) return error
    if (cannotNow(error)) return unavailable(error)
    if (classify(error) === 'not_prepared')
      return new OnlyonceError('statement_not_prepared', { cause: error })
    return error
  }

  #connect(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      let waiting = true
      const { idleCount, waitingCount, totalCount } = this.#pool
      // The pool opens one for this caller, so no other code holds what it waits for: a server that does not let it in is silent.
      const opens = idleCount === 0 && totalCount < this.size
      // With more idle than waiting, the pool answers within this turn of the event loop.
      const timer =
        idleCount > waitingCount
          ? undefined
          : setTimeout(() => {
              waiting = false
              reject(opens ? unavailable(noAnswer()) : new OnlyonceError('pool_exhausted'))
            }, this.settings.connectionWaitMaxMs)
      this.#pool.connect((error, client) => {
        clearTimeout(timer)
        // The pool's own time-out calls back with an error alone, also after ours: then there is nothing to give back.
        if (client === undefined) {
          reject(
            waitedInVain(error) ? new OnlyonceError('pool_exhausted', { cause: error }) : unavailable(error),
          )
          return
        }
        listen(client)
        if (waiting) resolve(client)
        else this.release(client)
      })
    })
  }

  async #meet(client: PoolClient): Promise<void> {
    const { lockWaitMaxMs, idleInTransactionMaxMs, pooler, statementMaxMs } = this.settings
    if (pooler === 'transaction') {
      this.#prefix.set(client, [this.#setLockWait, this.#setIdle])
      return
    }
    const ask = () => flush(client, [bind(readBounds)], this.named)
    const { rows } = await inTime(client, statementMaxMs, ask)
    const [lockMs, idleMs] = rows[0]!.map((row) => Number(row[0]))
    this.#prefix.set(client, [
      ...(within(lockMs!, lockWaitMaxMs) ? [] : [this.#setLockWait]),
      ...(within(idleMs!, idleInTransactionMaxMs) ? [] : [this.#setIdle]),
    ])
  }
}

const OPEN_TRANSACTIONS = 'All connections of the pool were given back with a transaction open on them.'

/** What pg-pool says to a caller that waited for a connection which other code holds. Of a new one it says that its connection was terminated. */
function waitedInVain(error: unknown): boolean {
  return /^timeout exceeded when trying/.test(`${memberOf(error, 'message')}`)
}

/** With a sentence of ours about the cause, where it is known; the driver's own words stay in `cause`. */
function unavailable(cause: unknown): OnlyonceError {
  const detail = troubleDetail(cause)
  return new OnlyonceError('store_unavailable', { cause, ...(detail !== undefined && { detail }) })
}

/** Who wants to know when the connection of a client is lost. A client has one user at a time, of all stores. */
const losers = new WeakMap<PoolClient, (error: unknown) => void>()
const heard = new WeakSet<PoolClient>()

/**
 * Once for the life of the client, and not for each use. At once: without a listener the loss of a connection
 * that is in use ends the process, and it may be reported in the very next packet.
 */
function listen(client: PoolClient): void {
  if (heard.has(client)) return
  heard.add(client)
  client.on('error', (error) => losers.get(client)?.(error))
}

/** Zero means no bound; a session that is stricter than we are stays as it is. */
function within(sessionMs: number, wantedMs: number): boolean {
  return sessionMs > 0 && sessionMs <= wantedMs
}
