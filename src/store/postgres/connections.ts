import type { Pool, PoolClient } from 'pg'
import { OnlyonceError } from '../../errors.ts'
import { LIMITS } from '../../limits.ts'
import { classify, isBroken } from './classify.ts'
import { type Bound, bind, type FlushResult, flush, statement } from './flush.ts'
import type { PostgresSettings } from './options.ts'
import { Slots } from './slots.ts'
import { READ_BOUNDS, SET_BOUNDS } from './sql/session.ts'
import { destroy, unsupported } from './wire.ts'

const readBounds = statement(READ_BOUNDS)
const setBounds = statement(SET_BOUNDS)

/** The pool, seen through our bounds: nobody waits for ever, and no connection is left in doubt. */
export class Connections {
  readonly settings: PostgresSettings
  /** Named statements need a session that stays the same. */
  readonly named: boolean
  /** Transactions at once. One connection stays free for lookups wherever there are more than two. */
  readonly slots: Slots
  /** How many transactions may wait for another's record at once; the last connection is for bystanders. */
  readonly waiters_max: number
  readonly size: number
  readonly #pool: Pool
  readonly #prefix = new WeakMap<PoolClient, readonly Bound[]>()
  /** Transactions whose record is on its way: each may turn out to wait for another's. */
  finishing = 0

  constructor(pool: Pool, settings: PostgresSettings) {
    this.#pool = pool
    this.settings = settings
    this.named = settings.pooler === 'none'
    this.size = pool.options.max
    this.waiters_max = this.size - 1
    this.slots = new Slots({
      size: this.size > 2 ? this.size - 1 : this.size,
      waiting_max: LIMITS.waiting_max,
      wait_max_ms: settings.connection_wait_max_ms,
    })
  }

  /** Statements of our own on any connection, in one flush. The time they may take is bounded. */
  run(...bounds: readonly Bound[]): Promise<FlushResult> {
    return this.#run(() => bounds)
  }

  /**
   * The same, with a bound on waiting for locks. Up to their Sync the statements of a flush are one
   * transaction, so the bound ends with them.
   */
  runBounded(bound: Bound): Promise<FlushResult> {
    return this.#run((client) => [...this.prefix(client), bound])
  }

  async #run(boundsFor: (client: PoolClient) => readonly Bound[]): Promise<FlushResult> {
    const client = await this.acquire()
    const timer = setTimeout(() => destroy(client), this.settings.statement_max_ms)
    let failure: Error | undefined
    try {
      return await flush(client, boundsFor(client), this.named)
    } catch (error) {
      failure = error as Error
      throw this.translate(error)
    } finally {
      clearTimeout(timer)
      this.release(client, failure !== undefined && isBroken(failure) ? failure : undefined)
    }
  }

  /** A connection, checked once for what we need of it. */
  async acquire(): Promise<PoolClient> {
    const client = await this.#connect()
    client.on('error', ignore)
    if (!this.#prefix.has(client)) {
      try {
        await this.#meet(client)
      } catch (error) {
        this.release(client, error as Error)
        throw this.translate(error)
      }
    }
    return client
  }

  release(client: PoolClient, failure?: Error): void {
    client.off('error', ignore)
    // A client that is thrown away may still report the loss of its connection; nobody else listens then.
    if (failure !== undefined) client.on('error', ignore)
    client.release(failure)
  }

  /** What has to follow BEGIN on this connection for its waits to be bounded; nothing if they are already. */
  prefix(client: PoolClient): readonly Bound[] {
    return this.#prefix.get(client) ?? []
  }

  translate(error: unknown): unknown {
    if (error instanceof OnlyonceError) return error
    const fault = classify(error)
    if (fault === 'connection' || fault === 'unanswered' || fault === 'not_primary') {
      return new OnlyonceError('store_unavailable', { cause: error })
    }
    if (fault === 'not_prepared') return new OnlyonceError('statement_not_prepared', { cause: error })
    return error
  }

  #connect(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      let waiting = true
      const timer = setTimeout(() => {
        waiting = false
        reject(new OnlyonceError('pool_exhausted'))
      }, this.settings.connection_wait_max_ms)
      this.#pool.connect((error, client, release) => {
        clearTimeout(timer)
        if (!waiting) return release()
        if (error || client === undefined)
          return reject(new OnlyonceError('store_unavailable', { cause: error }))
        resolve(client)
      })
    })
  }

  async #meet(client: PoolClient): Promise<void> {
    const problem = unsupported(client)
    if (problem !== null) throw new OnlyonceError('option_invalid', { detail: problem })
    const { lock_wait_max_ms, idle_in_transaction_max_ms, pooler, statement_max_ms } = this.settings
    const set = [bind(setBounds, `${lock_wait_max_ms}`, `${idle_in_transaction_max_ms}`)]
    if (pooler === 'transaction') {
      this.#prefix.set(client, set)
      return
    }
    const timer = setTimeout(() => destroy(client), statement_max_ms)
    try {
      const { rows } = await flush(client, [bind(readBounds)], this.named)
      const [lock_ms, idle_ms] = rows[0]!.map((row) => Number(row[0]))
      const bounded = within(lock_ms!, lock_wait_max_ms) && within(idle_ms!, idle_in_transaction_max_ms)
      this.#prefix.set(client, bounded ? [] : set)
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Zero means no bound; a session that is stricter than we are stays as it is. */
function within(session_ms: number, wanted_ms: number): boolean {
  return session_ms > 0 && session_ms <= wanted_ms
}

function ignore(): void {}
