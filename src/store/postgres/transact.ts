import { createHash } from 'node:crypto'
import { OnlyonceError } from '../../errors.ts'
import type { RecordId, Reply } from '../../record/index.ts'
import type { CrashPoint, TransactionAttempt, TransactionEnd } from '../contract.ts'
import { classify, isBroken, leavesDoubt, sqlState } from './classify.ts'
import type { Connections } from './connections.ts'
import { endOfFailedWork, endOfRefusal, type Facts } from './ends.ts'
import { type Bound, bind, Flush, flush, submit } from './flush.ts'
import { Link } from './link.ts'
import { readRecord } from './rows.ts'
import { BEGIN, COMMIT, ROLLBACK, SET_LAST_WAIT, type Statements, TRY_LOCK } from './statements.ts'
import { type PostgresTx, Tx } from './tx.ts'
import { completedValues, supersedeValues } from './values.ts'

type Work = (tx: PostgresTx) => Promise<Reply>

/**
 * One attempt: work, record and reply in one transaction and one commit.
 *
 * Round trips for work that runs one statement: one for BEGIN and the statement, one for the record and
 * COMMIT. Ways that were measured and dropped are listed in docs/architecture.md.
 */
export function transact(
  connections: Connections,
  statements: Statements,
  attempt: TransactionAttempt,
  work: Work,
  crashPoint: CrashPoint,
): Promise<TransactionEnd> {
  return new Transaction(connections, statements, attempt, crashPoint).run(work)
}

class Transaction {
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #attempt: TransactionAttempt
  readonly #link: Link
  readonly #tx: Tx
  readonly #crashPoint: CrashPoint

  constructor(
    connections: Connections,
    statements: Statements,
    attempt: TransactionAttempt,
    crashPoint: CrashPoint,
  ) {
    this.#connections = connections
    this.#statements = statements
    this.#attempt = attempt
    this.#crashPoint = crashPoint
    this.#link = new Link(connections)
    this.#tx = new Tx(this.#link, connections, BEGIN[attempt.isolation ?? 'default'])
  }

  async run(work: Work): Promise<TransactionEnd> {
    const max_ms = Math.min(this.#connections.settings.transaction_max_ms, this.#attempt.time_max_ms)
    const timer = setTimeout(() => this.#link.cut(new OnlyonceError('deadline_exceeded')), max_ms)
    try {
      return await this.#run(work)
    } finally {
      clearTimeout(timer)
      this.#link.release()
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
      await this.#tx.drain()
      if (this.#link.client === null) await this.#link.attachInTime()
      if (this.#link.lost !== null) throw this.#link.lost
      this.#crashPoint('transaction.work.after')
      if (this.#tx.ended_inside) throw new OnlyonceError('transaction_ended_inside')
    } catch (error) {
      this.#tx.end()
      const { failure } = this.#tx
      if (failure !== null && classify(failure) === 'unanswered') this.#link.lose(failure)
      // Without a connection nothing was sent: what still waits for one is refused when it comes.
      else if (this.#link.client !== null) await this.#tx.drain()
      await this.#rollBack(null)
      if (this.#link.lost !== null) this.#tx.lostConnection()
      const end = endOfFailedWork(error, this.#facts)
      // Some errors leave a connection that answers and yet is of no more use: its statements are not what they were.
      if (end.end === 'rerun' && failure !== null && isBroken(failure)) this.#link.lose(failure)
      return end
    }
    this.#tx.end()
    return this.#attempt.previous === null ? this.#insert(reply) : this.#supersede(reply)
  }

  /** Runs the work, but does not wait for it longer than its connection lives, or its time lasts. */
  #runWork(work: Work): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#link.onLost(reject)
      if (this.#link.lost === null) work(this.#tx).then(resolve, reject)
    })
  }

  /**
   * For `exclusive`: the lock first, then a look under it, because the owner before us may have committed
   * between our first look and our lock.
   */
  async #lockFirst(): Promise<TransactionEnd | null> {
    const { id, previous } = this.#attempt
    const client = await this.#link.attachInTime()
    const bounds = [
      ...this.#tx.takeUnsent(),
      bind(TRY_LOCK, lockOf(this.#connections.settings.schema, id)),
      bind(this.#statements.lookOne, id.account, id.operation, id.key),
    ]
    try {
      const { rows } = await flush(client, bounds, this.#connections.named)
      this.#tx.markOpened()
      if (rows.at(-2)![0]![0] !== 't') return { end: 'busy' }
      const row = rows.at(-1)![0]
      const fence = row === undefined ? 0 : readRecord(row).record.fence
      return fence === (previous?.fence ?? 0) ? null : { end: 'conflict' }
    } catch (error) {
      this.#tx.failure = error
      throw error
    }
  }

  /** A new key: the finished record and COMMIT in one flush. A conflict makes the server skip the COMMIT. */
  #insert(reply: Reply): Promise<TransactionEnd> {
    return this.#commit(reply, [
      ...this.#tx.takeUnsent(),
      ...this.#lastWait(),
      bind(this.#statements.insertCompleted, ...completedValues(this.#attempt, reply)),
      bind(COMMIT),
    ])
  }

  /**
   * A record is there already and may run again. An UPDATE that finds another fence fails silently, so COMMIT
   * has to wait until we have seen that it did not.
   */
  async #supersede(reply: Reply): Promise<TransactionEnd> {
    const values = supersedeValues(this.#attempt, { state: 'completed', reply })
    const bounds = [
      ...this.#tx.takeUnsent(),
      ...this.#lastWait(),
      bind(this.#statements.supersede, ...values),
    ]
    this.#connections.finishing += 1
    try {
      const { rows } = await flush(this.#link.client!, bounds, this.#connections.named, this.#guard)
      if (rows.at(-1)!.length === 0) return await this.#rollBack({ end: 'conflict' })
    } catch (error) {
      // We have not sent COMMIT: whether the connection lives or not, this is a rollback, unless the work ended it.
      await this.#rollBack(null)
      if (this.#link.lost !== null) this.#tx.lostConnection()
      if (this.#tx.ended_inside) return endOfFailedWork(error, this.#facts)
      return this.#link.lost === null
        ? endOfRefusal(error, this.#facts)
        : { end: 'rerun', error: this.#connections.translate(error) }
    } finally {
      this.#connections.finishing -= 1
    }
    return await this.#commit(reply, [bind(COMMIT)])
  }

  /** When all other connections may be waiting for a record already, this one must not wait for long. */
  #lastWait(): readonly Bound[] {
    const { finishing, waiters_max } = this.#connections
    return finishing >= waiters_max ? [bind(SET_LAST_WAIT)] : []
  }

  async #commit(reply: Reply, bounds: readonly Bound[]): Promise<TransactionEnd> {
    const client = this.#link.client!
    const batch = new Flush(bounds, this.#connections.named, this.#guard)
    this.#connections.finishing += 1
    try {
      this.#crashPoint('transaction.commit.before')
      await new Promise<void>((resolve, reject) => {
        batch.callback = (error) => (error ? reject(error) : resolve())
        submit(client, batch)
        this.#crashPoint('transaction.commit.sent')
      })
      this.#crashPoint('transaction.commit.after')
      // COMMIT of an aborted transaction is answered with ROLLBACK, and without an error.
      return batch.tag === 'COMMIT' ? { end: 'committed', reply } : { end: 'rerun', error: this.#tx.failure }
    } catch (error) {
      return await this.#endOfLostCommit(reply, batch, bounds.length, error)
    } finally {
      this.#connections.finishing -= 1
    }
  }

  /**
   * The flush with COMMIT brought an error. Whether it came instead of the commit or after it is asked of the
   * connection itself: a server that still answers has refused to commit; one that is gone may have committed
   * first. The severity of the error is no help: FATAL may follow a commit, and its name depends on the
   * server's language.
   */
  async #endOfLostCommit(
    reply: Reply,
    batch: Flush,
    statements: number,
    error: unknown,
  ): Promise<TransactionEnd> {
    // The work may have swallowed that its last answer was lost: a pooler reports that before it hangs up.
    if (leavesDoubt(error)) this.#tx.lostConnection()
    if (this.#tx.ended_inside) {
      await this.#rollBack(null)
      return endOfFailedWork(error, this.#facts)
    }
    if (batch.done === statements && batch.tag === 'COMMIT') {
      this.#link.lose(error)
      return { end: 'committed', reply }
    }
    if (leavesDoubt(error)) this.#link.lose(error)
    await this.#rollBack(null, 'after_commit')
    if (this.#link.lost !== null) return { end: 'in_doubt', reply, error: this.#connections.translate(error) }
    const at_record = batch.done === statements - 2
    if (at_record && classify(error) === 'unique') return { end: 'conflict' }
    const { failure } = this.#tx
    if (failure !== null && sqlState(failure) !== null && isBroken(failure)) this.#link.lose(failure)
    return endOfRefusal(error, this.#facts)
  }

  /**
   * Rolls back before the connection goes to somebody else; one that cannot is thrown away. Unless we have sent
   * COMMIT ourselves, a transaction that is over by then was ended by the work.
   */
  async #rollBack<T>(end: T, when: 'before_commit' | 'after_commit' = 'before_commit'): Promise<T> {
    const { client, lost } = this.#link
    if (client !== null && lost === null && this.#tx.begun) {
      try {
        await flush(client, [bind(ROLLBACK)], this.#connections.named, () => {
          if (when === 'before_commit') this.#tx.wasEndedInside()
          return null
        })
      } catch (error) {
        this.#link.lose(error)
      }
    }
    return end
  }

  get #facts(): Facts {
    const { failure, ended_inside } = this.#tx
    return {
      failure,
      ended_inside,
      lost: this.#link.lost,
      translate: (error) => this.#connections.translate(error),
    }
  }

  /** Keeps a record from being written by itself after the function has ended its transaction. */
  readonly #guard = (): Error | null =>
    this.#tx.wasEndedInside() ? new OnlyonceError('transaction_ended_inside') : null
}

function lockOf(schema: string, id: RecordId): string {
  const parts = [schema, id.account, id.operation, id.key].join('\0')
  return createHash('sha256').update(parts).digest().readBigInt64BE(0).toString()
}
