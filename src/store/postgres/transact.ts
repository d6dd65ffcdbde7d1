import { createHash } from 'node:crypto'
import type { PoolClient } from 'pg'
import { OnlyonceError } from '../../errors.ts'
import { LIMITS } from '../../limits.ts'
import type { Reply } from '../../record/index.ts'
import type { TransactionAttempt, TransactionEnd } from '../contract.ts'
import { classify, isBroken, provesRollback } from './classify.ts'
import type { Connections } from './connections.ts'
import { type Bound, bind, Flush, flush, submit } from './flush.ts'
import { readRecord } from './rows.ts'
import { BEGIN, COMMIT, ROLLBACK, SET_LAST_WAIT, type Statements, TRY_LOCK } from './statements.ts'
import { type PostgresTx, Tx } from './tx.ts'
import { completedValues, supersedeValues } from './values.ts'
import { destroy } from './wire.ts'

type Work = (tx: PostgresTx) => Promise<Reply>

/**
 * One attempt: work, record and reply in one transaction and one commit.
 *
 * Round trips for work that runs one statement: one for BEGIN and the statement, one for the record and
 * COMMIT. Ways that were measured and dropped are listed in docs/architecture.md.
 */
export async function transact(
  connections: Connections,
  statements: Statements,
  attempt: TransactionAttempt,
  work: Work,
  crashPoint: (point: string) => void,
): Promise<TransactionEnd> {
  const slot = connections.slots.acquire()
  if (slot !== undefined) await slot
  try {
    const client = await connections.acquire()
    return await new Transaction(connections, statements, attempt, client, crashPoint).run(work)
  } finally {
    connections.slots.release()
  }
}

class Transaction {
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #attempt: TransactionAttempt
  readonly #client: PoolClient
  readonly #tx: Tx
  readonly #crashPoint: (point: string) => void
  /** Set when the connection is gone or was ended by us; says why. */
  #lost: unknown = null
  #onLost: ((error: unknown) => void) | null = null

  constructor(
    connections: Connections,
    statements: Statements,
    attempt: TransactionAttempt,
    client: PoolClient,
    crashPoint: (point: string) => void,
  ) {
    this.#connections = connections
    this.#statements = statements
    this.#attempt = attempt
    this.#client = client
    this.#crashPoint = crashPoint
    const begin = [bind(BEGIN[attempt.isolation ?? 'default']), ...connections.prefix(client)]
    this.#tx = new Tx(client, begin, connections.named)
  }

  async run(work: Work): Promise<TransactionEnd> {
    const lose = (error: unknown) => this.#lose(error)
    this.#client.on('error', lose)
    const timer = setTimeout(() => {
      this.#lose(new OnlyonceError('deadline_exceeded'))
      destroy(this.#client)
    }, this.#connections.settings.transaction_max_ms)
    try {
      return await this.#run(work)
    } finally {
      clearTimeout(timer)
      this.#client.off('error', lose)
      this.#connections.release(this.#client, this.#lost === null ? undefined : (this.#lost as Error))
    }
  }

  async #run(work: Work): Promise<TransactionEnd> {
    let reply: Reply
    try {
      if (this.#attempt.exclusive) {
        const refusal = await this.#lockFirst()
        if (refusal !== null) return await this.#rollBack(refusal)
      }
      this.#crashPoint('transaction.work.before')
      reply = await this.#runWork(work)
      this.#crashPoint('transaction.work.after')
    } catch (error) {
      this.#tx.end()
      return await this.#rollBack(this.#endOfFailedWork(error))
    }
    this.#tx.end()
    return this.#attempt.previous === null ? await this.#insert(reply) : await this.#supersede(reply)
  }

  /** Runs the work, but does not wait for it longer than its connection lives. */
  #runWork(work: Work): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#onLost = reject
      if (this.#lost !== null) return reject(this.#lost)
      work(this.#tx).then(resolve, reject)
    })
  }

  #lose(error: unknown): void {
    this.#lost ??= error
    this.#onLost?.(this.#lost)
  }

  /** COMMIT has not been sent, so whatever happened, nothing took effect. */
  #endOfFailedWork(error: unknown): TransactionEnd {
    const { failure } = this.#tx
    // A query may hear of the loss before the client does.
    if (failure !== null && isBroken(failure)) this.#lose(failure)
    if (this.#lost === null) {
      if (this.#collided()) return { end: 'rerun', error }
      // Often it is a duplicate elsewhere that holds the row: whoever waits for it waits for the same request.
      return error === failure && classify(failure) === 'lock_wait'
        ? { end: 'busy' }
        : { end: 'failed', error }
    }
    if (this.#lost instanceof OnlyonceError) return { end: 'failed', error: this.#lost }
    switch (classify(this.#lost)) {
      case 'idle':
        return { end: 'failed', error: new OnlyonceError('transaction_idle', { cause: this.#lost }) }
      case 'unanswered':
        return { end: 'failed', error }
      default:
        return { end: 'rerun', error: this.#connections.translate(this.#lost) }
    }
  }

  #collided(): boolean {
    return this.#tx.failure !== null && classify(this.#tx.failure) === 'collision'
  }

  /**
   * For `exclusive`: the lock first, then a look under it, because the owner before us may have committed
   * between our first look and our lock.
   */
  async #lockFirst(): Promise<TransactionEnd | null> {
    const { id, previous } = this.#attempt
    const bounds = [
      ...this.#tx.unsent,
      bind(TRY_LOCK, lockOf(this.#connections.settings.schema, id)),
      bind(this.#statements.lookOne, id.account, id.operation, id.key),
    ]
    this.#tx.markBegun()
    const { rows } = await flush(this.#client, bounds, this.#connections.named)
    if (rows.at(-2)![0]![0] !== 't') return { end: 'busy' }
    const row = rows.at(-1)![0]
    const fence = row === undefined ? 0 : readRecord(row).record.fence
    return fence === (previous?.fence ?? 0) ? null : { end: 'conflict' }
  }

  /** A new key: the finished record and COMMIT in one flush. A conflict makes the server skip the COMMIT. */
  async #insert(reply: Reply): Promise<TransactionEnd> {
    const bounds = [
      ...this.#tx.unsent,
      ...this.#lastWait(),
      bind(this.#statements.insertCompleted, ...completedValues(this.#attempt, reply)),
      bind(COMMIT),
    ]
    this.#tx.markBegun()
    return await this.#commit(bounds)
  }

  /**
   * A record is there already and may run again. An UPDATE that finds another fence fails silently, so COMMIT
   * has to wait until we have seen that it did not.
   */
  async #supersede(reply: Reply): Promise<TransactionEnd> {
    const values = supersedeValues(this.#attempt, { state: 'completed', reply })
    const bounds = [...this.#tx.unsent, ...this.#lastWait(), bind(this.#statements.supersede, ...values)]
    this.#tx.markBegun()
    this.#connections.finishing += 1
    try {
      const { rows } = await flush(this.#client, bounds, this.#connections.named)
      if (rows.at(-1)!.length === 0) return await this.#rollBack({ end: 'conflict' })
    } catch (error) {
      if (!provesRollback(error)) {
        this.#lose(error)
        return { end: 'rerun', error: this.#connections.translate(error) }
      }
      return await this.#rollBack(this.#endOfRefusal(error))
    } finally {
      this.#connections.finishing -= 1
    }
    return await this.#commit([bind(COMMIT)])
  }

  /** When all other connections may be waiting for a record already, this one must not wait for long. */
  #lastWait(): readonly Bound[] {
    const { finishing, waiters_max } = this.#connections
    return finishing >= waiters_max ? [bind(SET_LAST_WAIT, `${LIMITS.lock_wait_last_ms}`)] : []
  }

  async #commit(bounds: readonly Bound[]): Promise<TransactionEnd> {
    const batch = new Flush(bounds, this.#connections.named)
    this.#connections.finishing += 1
    try {
      this.#crashPoint('transaction.commit.before')
      const tag = await new Promise<string>((resolve, reject) => {
        batch.callback = (error) => (error ? reject(error) : resolve(batch.tag))
        submit(this.#client, batch)
        this.#crashPoint('transaction.commit.sent')
      })
      this.#crashPoint('transaction.commit.after')
      // COMMIT of an aborted transaction is answered with ROLLBACK, and without an error.
      return tag === 'COMMIT' ? { end: 'committed' } : { end: 'rerun', error: this.#tx.failure }
    } catch (error) {
      if (batch.done === bounds.length) return { end: 'committed' }
      if (provesRollback(error)) return await this.#rollBack(this.#endOfRefusal(error))
      this.#lose(error)
      return { end: 'in_doubt', error: this.#connections.translate(error) }
    } finally {
      this.#connections.finishing -= 1
    }
  }

  /** The server refused to finish, and so has rolled back. */
  #endOfRefusal(error: unknown): TransactionEnd {
    const fault = classify(error)
    switch (fault) {
      case 'record_conflict':
        return { end: 'conflict' }
      case 'lock_wait':
        return { end: 'busy' }
      case 'collision':
        return { end: 'rerun', error }
      case 'aborted':
        return this.#collided()
          ? { end: 'rerun', error: this.#tx.failure }
          : { end: 'failed', error: this.#tx.failure ?? error }
      default:
        return { end: 'failed', error: this.#connections.translate(error) }
    }
  }

  /** Rolls back before the connection goes to somebody else; one that cannot is thrown away. */
  async #rollBack(end: TransactionEnd): Promise<TransactionEnd> {
    if (this.#lost === null && this.#tx.begun) {
      try {
        await flush(this.#client, [bind(ROLLBACK)], this.#connections.named)
      } catch (error) {
        this.#lose(error)
      }
    }
    return end
  }
}

function lockOf(schema: string, id: { account: string; operation: string; key: string }): string {
  const parts = [schema, id.account, id.operation, id.key].join('\0')
  return createHash('sha256').update(parts).digest().readBigInt64BE(0).toString()
}
