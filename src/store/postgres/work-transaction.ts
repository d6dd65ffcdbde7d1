import { OnlyonceError } from '../../core/errors.ts'
import type { CrashPoint, TransactionEnd } from '../contract.ts'
import { classify, isBroken, leavesDoubt, sqlState } from './classify.ts'
import type { Connections } from './connections.ts'
import { running } from './current-tx.ts'
import { endByServer, endOfFailedWork, endOfRefusal, type Facts } from './ends.ts'
import { type Bound, bind, Flush, type FlushResult, flush, submit } from './flush.ts'
import { Link } from './link.ts'
import { COMMIT, ROLLBACK, SET_LAST_WAIT } from './statements.ts'
import { type PostgresTx, Tx } from './tx.ts'

export type Work<Written> = (tx: PostgresTx) => Promise<Written>

/** How one transaction with work of the user's in it is begun and ended. */
export interface Script<Written> {
  /** What its crash points are called: `transaction`, or `step`. */
  readonly name: string
  readonly begin: Bound
  /** What travels with it, made when it is sent. What fails there fails all that follows. */
  first?(): readonly Bound[]
  readonly timeMaxMs: number
  /** Work that uses none of its transaction is an error, and nothing is written. */
  readonly strict?: boolean
  /** Asked before the work; an end from it is the end. */
  before?(transaction: WorkTransaction<Written>): Promise<TransactionEnd<Written> | null>
  /** Makes what was written durable. */
  finish(transaction: WorkTransaction<Written>, written: Written): Promise<TransactionEnd<Written>>
}

const unused = () =>
  ({ end: 'ended_inside', error: new OnlyonceError('transaction_unused') }) satisfies TransactionEnd<never>

/**
 * A transaction that runs work of the user's and then commits, with what is known about its end told exactly. Round
 * trips for work that runs one statement: one for BEGIN and the statement, one for the record and COMMIT. Ways that
 * were measured and dropped are listed in docs/explanation/architecture.md.
 */
export class WorkTransaction<Written> {
  readonly connections: Connections
  readonly link: Link
  readonly tx: Tx
  readonly #script: Script<Written>
  readonly #crashPoint: CrashPoint

  constructor(connections: Connections, script: Script<Written>, crashPoint: CrashPoint) {
    this.connections = connections
    this.#script = script
    this.#crashPoint = crashPoint
    this.link = new Link(connections)
    this.tx = new Tx(this.link, connections, script.begin, () => script.first?.() ?? [])
  }

  async run(work: Work<Written>): Promise<TransactionEnd<Written>> {
    const maxMs = Math.min(this.connections.settings.transactionMaxMs, this.#script.timeMaxMs)
    const timer = setTimeout(() => this.link.cut(new OnlyonceError('deadline_exceeded')), maxMs)
    try {
      let written: Written
      try {
        const refusal = this.#script.before === undefined ? null : await this.#script.before(this)
        if (refusal !== null) return await this.rollBack(refusal)
        this.#reach('work.before')
        written = await this.#runWork(work)
        if (!this.tx.drained) await this.#waitForCalls()
        // Before a connection is asked for: that may fail, and "rolled back" would then be told of what stands elsewhere.
        if (this.#script.strict === true && this.tx.unused) return await this.rollBack(unused())
        if (this.link.client === null) await this.link.attachInTime()
        if (this.link.lost !== null) throw this.link.lost
        this.#reach('work.after')
        if (this.tx.endedInside) throw new OnlyonceError('transaction_ended_inside')
      } catch (error) {
        return await this.#endOfFailure(error)
      }
      this.tx.end()
      return await this.#script.finish(this, written)
    } finally {
      clearTimeout(timer)
      this.link.release()
    }
  }

  async #endOfFailure(error: unknown): Promise<TransactionEnd<Written>> {
    this.tx.end()
    const { failure } = this.tx
    if (failure !== null && classify(failure) === 'unanswered') this.link.lose(failure)
    // Without a connection nothing was sent: what still waits for one is refused when it comes.
    else if (this.link.client !== null) await this.tx.drain()
    await this.rollBack(null)
    if (this.link.lost !== null) this.tx.lostConnection()
    const end = endOfFailedWork(error, this.#facts)
    // Some errors leave a connection that answers and yet is of no more use: its statements are not what they were.
    if (end.end === 'rerun' && failure !== null && isBroken(failure)) this.link.lose(failure)
    this.#leaveStandby(failure)
    return end
  }

  /** Runs the work, but does not wait for it longer than its connection lives, or its time lasts. */
  #runWork(work: Work<Written>): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.link.onLost(reject)
      if (this.link.lost === null) this.#begin(work).then(resolve, reject)
    })
  }

  #begin(work: Work<Written>): Promise<Written> {
    return this.connections.settings.currentTx ? running.run(this.tx, work, this.tx) : work(this.tx)
  }

  /** What the work has begun and not awaited is a part of it. It is not waited for longer than the connection lives, or the time lasts. */
  #waitForCalls(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.link.onLost(reject)
      this.tx.settled().then(resolve, reject)
    })
  }

  /** What goes before the last statements: BEGIN if it was not sent yet, and a bound on waiting. */
  lastBounds(): readonly Bound[] {
    return [...this.tx.takeUnsent(), ...this.#lastWait()]
  }

  /** When all other connections may be waiting for a record already, this one must not wait for long. */
  #lastWait(): readonly Bound[] {
    const { finishing, waitersMax } = this.connections
    return finishing >= waitersMax ? [bind(SET_LAST_WAIT)] : []
  }

  /**
   * Sends a last statement and looks at what it gave, before COMMIT. An end where it was refused, or where `refuse`
   * makes one of its rows.
   */
  async ask(
    bound: Bound,
    refuse: (rows: number) => TransactionEnd<Written> | null,
  ): Promise<TransactionEnd<Written> | null> {
    this.connections.finishing += 1
    try {
      const bounds = [...this.lastBounds(), bound]
      const { rows } = await flush(this.link.client!, bounds, this.connections.named, this.#guard)
      const refusal = refuse(rows.at(-1)!.length)
      return refusal === null ? null : await this.rollBack(refusal)
    } catch (error) {
      // We have not sent COMMIT: whether the connection lives or not, this is a rollback, unless the work ended it.
      await this.rollBack(null)
      if (this.link.lost !== null) this.tx.lostConnection()
      if (this.tx.endedInside) return endOfFailedWork(error, this.#facts)
      if (this.link.lost !== null) return this.#endOfLostRecord(error)
      this.#leaveStandby(error)
      return endOfRefusal(error, this.#facts)
    } finally {
      this.connections.finishing -= 1
    }
  }

  #endOfLostRecord(error: unknown): TransactionEnd<Written> {
    const byServer = endByServer(error, this.tx.failure)
    if (byServer !== null) return { end: 'failed', error: byServer }
    return { end: 'rerun', error: this.connections.translate(error) }
  }

  /** The last statements and COMMIT in one flush: where one of them fails, the server skips the COMMIT. */
  async commit(written: Written, last: readonly Bound[]): Promise<TransactionEnd<Written>> {
    const client = this.link.client!
    const bounds = [...last, bind(COMMIT)]
    const batch = new Flush(bounds, this.connections.named, this.#guard)
    this.connections.finishing += 1
    try {
      this.#reach('commit.before')
      const { rows } = await new Promise<FlushResult>((resolve, reject) => {
        batch.callback = (error, result) => (error ? reject(error) : resolve(result as FlushResult))
        submit(client, batch)
        this.#reach('commit.sent')
      })
      this.#reach('commit.after')
      // COMMIT of an aborted transaction is answered with ROLLBACK, and without an error.
      if (batch.tag !== 'COMMIT') return { end: 'rerun', error: this.tx.failure }
      const place = rows.at(-2)?.[0]?.[0] ?? undefined
      return { end: 'committed', reply: written, place, ...(this.tx.unused && { unused: true }) }
    } catch (error) {
      return await this.#endOfLostCommit(written, batch, bounds.length, error)
    } finally {
      this.connections.finishing -= 1
    }
  }

  /**
   * The flush with COMMIT brought an error. Whether it came instead of the commit or after it is asked of the
   * connection itself: a server that still answers has refused to commit; one that is gone may have committed
   * first. The severity of the error is no help: FATAL may follow a commit, and its name depends on the
   * server's language.
   */
  async #endOfLostCommit(
    written: Written,
    batch: Flush,
    statements: number,
    error: unknown,
  ): Promise<TransactionEnd<Written>> {
    // The work may have swallowed that its last answer was lost: a pooler reports that before it hangs up.
    if (leavesDoubt(error)) this.tx.lostConnection()
    if (this.tx.endedInside) {
      await this.rollBack(null)
      return endOfFailedWork(error, this.#facts)
    }
    if (batch.done === statements && batch.tag === 'COMMIT') {
      this.link.lose(error)
      return { end: 'committed', reply: written }
    }
    if (leavesDoubt(error)) this.link.lose(error)
    await this.rollBack(null, 'after_commit')
    if (this.link.lost !== null) {
      const byServer = endByServer(error, this.tx.failure)
      return { end: 'in_doubt', reply: written, error: byServer ?? this.connections.translate(error) }
    }
    const atRecord = batch.done === statements - 2
    if (atRecord && classify(error) === 'unique') return { end: 'conflict' }
    const { failure } = this.tx
    if (failure !== null && sqlState(failure) !== null && isBroken(failure)) this.link.lose(failure)
    this.#leaveStandby(error)
    return endOfRefusal(error, this.#facts)
  }

  /**
   * Rolls back before the connection goes to another; one that cannot is thrown away. Unless we have sent
   * COMMIT ourselves, a transaction that is over by then was ended by the work.
   */
  async rollBack<T>(end: T, when: 'before_commit' | 'after_commit' = 'before_commit'): Promise<T> {
    const { client, lost } = this.link
    if (client !== null && lost === null && this.tx.begun) {
      try {
        await flush(client, [bind(ROLLBACK)], this.connections.named, () => {
          if (when === 'before_commit') this.tx.wasEndedInside()
          return null
        })
      } catch (error) {
        this.link.lose(error)
      }
    }
    return end
  }

  /** After a failover the pool has to find the new primary: connections to a server that only reads are not kept. */
  #leaveStandby(error: unknown): void {
    if (error !== null && classify(error) === 'not_primary') this.link.lose(error)
  }

  get #facts(): Facts {
    const { failure, endedInside } = this.tx
    return {
      failure,
      endedInside,
      lost: this.link.lost,
      translate: (error) => this.connections.translate(error),
    }
  }

  #reach(point: string): void {
    this.#crashPoint(`${this.#script.name}.${point}`)
  }

  /** Keeps a record from being written by itself after the function has ended its transaction. */
  readonly #guard = (): Error | null =>
    this.tx.wasEndedInside() ? new OnlyonceError('transaction_ended_inside') : null
}
