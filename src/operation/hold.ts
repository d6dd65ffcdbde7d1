import { OnlyonceError, type Proof } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import { Heartbeat } from '../protect/heartbeat.ts'
import { inDoubt, leaveProved, releaseProved, UNWRITTEN } from '../protect/proof.ts'
import type { Failure, RecordId } from '../record/index.ts'
import type { Owned, TransactionAttempt } from '../store/contract.ts'
import type { Beginning, Written } from '../store/operations.ts'
import { isReadOnly } from '../store/read-only.ts'
import type { OperationAttempt, OperationHouse } from './attempt.ts'
import { openCallOf } from './open-call.ts'
import { writeStep } from './step.ts'
import { type CallInDoubt, Interrupted, isInterrupted, NO_CALL } from './stop.ts'

/**
 * An attempt's hold on its record: none at first, where the key is new, and from its first commit on a fence, a lease
 * and the signs of life that keep it.
 */
export class Hold<Tx> {
  readonly id: RecordId
  /** An earlier attempt may have done things that are not durable. Of what was left retryable it is proved that none did. */
  readonly resumed: boolean
  readonly house: OperationHouse<Tx>
  readonly attempt: OperationAttempt
  #owned: Owned | null = null
  #heartbeat: Heartbeat<Tx> | null = null
  #ended = false
  #durable: boolean
  /** How often it was looked at since the outcome is in doubt that it waits for. */
  #looks: number
  #open: CallInDoubt
  #place: Owned['place']
  #rememberedMs = 0
  /** How long others keep the record who end it in our place, by what is durable. */
  #keptMs: number
  /** How long the lease is good for, counted from before it was asked for. */
  #lease: Deadline
  /** Since the last commit that calls follow. */
  #point: { readonly ageMs: number; readonly since: Deadline }

  constructor(house: OperationHouse<Tx>, attempt: OperationAttempt, lease: Deadline) {
    this.house = house
    this.attempt = attempt
    this.id = attempt.id
    this.resumed = attempt.from === 'in_progress' || attempt.from === 'unknown'
    this.#lease = lease
    this.#looks = attempt.resumed?.looks ?? 0
    this.#open = openCallOf(attempt)
    this.#keptMs = attempt.head.retentionMs
    this.#durable = (attempt.resumed?.count ?? 0) > 0
    this.#point = pointAt(attempt.resumed?.pointAgeMs ?? 0)
  }

  /** What was taken over is ours from the start. */
  begin(): void {
    const { id, claimant, resumed } = this.attempt
    if (resumed === null) return
    this.#own({ id, fence: resumed.record.fence, attemptId: claimant.attemptId })
    this.#place = resumed.place
  }

  get owned(): Owned | null {
    return this.#owned
  }

  /** Whether any step is durable, of this attempt or of one before it. */
  get durable(): boolean {
    return this.#durable
  }

  /** The call that was in doubt when the record was taken, until it is proved what became of it. */
  get open(): CallInDoubt {
    return this.#open
  }

  /** It is proved what became of that call. */
  proved(): void {
    this.#open = NO_CALL
  }

  get signal(): AbortSignal {
    return this.#heartbeat?.signal ?? NEVER
  }

  /** Why the record has another owner, or null. */
  get lost(): unknown {
    return this.#heartbeat?.lost ?? null
  }

  onLost(tell: (reason: unknown) => void): () => void {
    return this.#heartbeat?.onLost(tell) ?? (() => {})
  }

  /** Waits for the function no longer than an attempt may take: one that never ends does not own a key for ever. */
  async inTime<T>(running: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<never>((_, reject) => {
      const tell = () => reject(new OnlyonceError('lease_lost', { detail: 'The operation took too long.' }))
      timer = setTimeout(tell, Math.min(this.attempt.inProgressMaxMs, LIMITS.timerMaxMs))
    })
    running.catch(() => {})
    try {
      return await Promise.race([running, over])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Owns a record from here on, by a commit of its own where there is none yet. */
  async claim(): Promise<void> {
    if (this.#owned !== null) return
    const { id, claimant, leaseMs, beginsUntil } = this.attempt
    // From the first try on: it may be the one that was done, and only its answer was lost.
    const lease = new Deadline(leaseMs)
    let maybeClaimed = false
    for (let tries = 0; ; tries += 1) {
      try {
        this.house.crashPoint('operation.claim.before')
        const claimed = await this.house.operations.claim(this.beginning)
        this.house.crashPoint('operation.claim.after')
        if (claimed !== 'claimed') throw new Interrupted({ why: claimed })
        this.#point = pointAt(0)
        this.#lease = lease
        this.#keptMs = this.bounds.retentionMs
        return this.#own({ id, fence: 1, attemptId: claimant.attemptId })
      } catch (error) {
        const unanswered = error instanceof OnlyonceError && error.code === 'store_unavailable'
        maybeClaimed ||= unanswered && !isReadOnly(error)
        if (unanswered && (await beginsUntil.backOff(tries))) continue
        // A claim that was made and not answered is gone on with by a worker: this request began it.
        throw maybeClaimed && !isInterrupted(error) ? inDoubt(error) : error
      }
    }
  }

  /**
   * Owns the record of a call that comes next, and makes durable how long that call needs it. Before the call is sent: its owner may
   * vanish in it, and then others end the record and do not know the call.
   */
  async claimForCall(): Promise<void> {
    await this.claim()
    const { retentionMs } = this.bounds
    if (retentionMs <= this.#keptMs) return
    this.house.crashPoint('operation.keep.before')
    this.misplaced()
    await this.house.operations.keepFor(this.#owned!, retentionMs)
    this.house.crashPoint('operation.keep.after')
    this.#keptMs = retentionMs
  }

  /** Makes results durable, or the end, without any work beside it. The store may be away for a while. */
  async write(written: Written): Promise<void> {
    if (this.#owned === null) {
      const end = await writeStep(this, 'read committed', async () => written)
      if (end.end === 'committed') return
      throw end.end === 'stop' ? new Interrupted(end.stop) : end.error
    }
    const { operations, crashPoint } = this.house
    const lease = new Deadline(this.attempt.leaseMs)
    await this.#persist(async (owned) => {
      crashPoint('operation.write.before')
      const place = await operations.write(owned, written, this.bounds)
      crashPoint('operation.write.after')
      this.committed(written, lease, place)
    })
  }

  /** Gives in how many milliseconds it is looked at; null where it was the last look, and it is parked. */
  async doubt(failure: Failure, call: CallInDoubt): Promise<number | null> {
    const looks = this.#looks
    const inMs = this.house.scheduleMs[looks]
    if (inMs === undefined) {
      await this.park(failure, call)
      return null
    }
    const next = { looks, inMs, ...call, ...this.bounds }
    await this.#leave((owned) => this.house.operations.doubt(owned, failure, next))
    return inMs
  }

  async park(failure: Failure, call: CallInDoubt = this.#open): Promise<void> {
    const waiting = { looks: this.#looks, ...call, ...this.bounds }
    await this.#leave((owned) => this.house.operations.park(owned, failure, waiting))
    this.house.onParked(this.id, failure)
  }

  /** The next request goes on behind the last durable step. A proof where there is none, and nothing was done. */
  async release(failure: Failure): Promise<Proof | null> {
    const { from, effectsPossible, head } = this.attempt
    const before = { from, effectsPossible, durable: this.#durable }
    let proof: Proof | null = null
    await this.#leave(async (owned) => {
      proof = await releaseProved(this.house.store, owned, failure, head.retentionMs, before)
    })
    return proof
  }

  /** Nothing is durable: the key keeps its fingerprint, as far as that can be written. */
  async leaveRetryable(failure: Failure): Promise<{ readonly left: boolean; readonly proof: Proof | null }> {
    return await leaveProved(this.house.store, this.asTransaction(), failure).catch(() => UNWRITTEN)
  }

  /** The other side of a call remembers its key for so long: the record must not be forgotten before. */
  rememberedFor(ms: number): void {
    this.#rememberedMs = Math.max(this.#rememberedMs, ms)
  }

  /** Lets others go on at once. */
  async handOver(): Promise<void> {
    if (this.#owned === null) return
    await this.#heartbeat?.hush()
    await this.house.store.extend(this.#owned, 0).catch(() => {})
  }

  /** No signs of life while a transaction of ours holds the row; until it does, they are all that keeps others away. */
  async quietly<T>(run: (onLock: () => Owned['place']) => Promise<T>): Promise<T> {
    try {
      return await run(() => {
        this.#heartbeat?.pause()
        return this.#place
      })
    } finally {
      this.#heartbeat?.resume()
    }
  }

  /** Since the commit before the first attempt at the next call. */
  get keyAgeMs(): number {
    return this.#point.ageMs + LIMITS.timerMaxMs - this.#point.since.leftMs
  }

  end(): void {
    this.#ended = true
    this.#heartbeat?.stop()
    if (this.#owned !== null) this.house.running.end(this.#owned)
  }

  /** A call begins only if the lease outlasts it: the next owner then finds it sent, or never sent. */
  async holdFor(ms: number): Promise<void> {
    if (this.lost !== null) throw this.lost
    // Handed over, because this process closes: the lease is shorter now than it was asked for.
    if (this.#heartbeat?.stopped === true) throw new OnlyonceError('lease_lost')
    if (this.#lease.leftMs > ms) return
    const { leaseMs } = this.attempt
    const lease = new Deadline(leaseMs)
    this.house.crashPoint('operation.extend.before')
    this.misplaced()
    await this.house.store.extend(this.#owned!, leaseMs)
    this.house.crashPoint('operation.extend.after')
    this.#lease = lease
  }

  /** Something became durable, with a lease that was asked for after `lease` began to run. */
  committed(written: Written, lease: Deadline, place: Owned['place']): void {
    this.#durable = true
    if (written.state === 'completed') return
    this.#lease = lease
    this.#looks = 0
    this.#point = pointAt(0)
    const { id, claimant } = this.attempt
    if (this.#owned === null) this.#own({ id, fence: 1, attemptId: claimant.attemptId })
    this.#place = place
  }

  /** The record is not where it was put, because a step did not find it there or a new lease has moved it. */
  misplaced(): void {
    this.#place = undefined
  }

  #own(owned: Owned): void {
    const { store, running, onLeaseLost } = this.house
    this.#owned = owned
    // A step that the function did not await: signs of life of what is over would only keep others waiting.
    if (this.#ended) throw new Interrupted({ why: 'lost', error: new OnlyonceError('lease_lost') })
    // A step that looks for the record where it no longer is would be run for nothing, and then again.
    const onBeat = () => this.misplaced()
    this.#heartbeat = new Heartbeat(store, owned, this.attempt, onLeaseLost, onBeat)
    if (running.begin(owned, this.#heartbeat, 'operations')) return
    this.#heartbeat.stop()
    // Too late: closing is past handing this lease over.
    throw new Interrupted({ why: 'failed', error: new OnlyonceError('closed') })
  }

  async #leave(write: (owned: Owned) => Promise<void>): Promise<void> {
    this.house.crashPoint('operation.leave.before')
    await this.#persist(write)
    this.house.crashPoint('operation.leave.after')
  }

  /** Goes on trying while the lease is kept alive: what was done must not be forgotten. */
  async #persist(write: (owned: Owned) => Promise<void>): Promise<void> {
    const deadline = new Deadline(LIMITS.saveMaxMs)
    for (let tries = 0; ; tries += 1) {
      try {
        return await write(this.#owned!)
      } catch (cause) {
        if (cause instanceof OnlyonceError && cause.code === 'lease_lost') throw cause
        if (!(await deadline.backOff(tries))) throw new OnlyonceError('outcome_unknown', { cause })
      }
    }
  }

  get bounds(): Pick<Beginning, 'leaseMs' | 'retentionMs'> {
    const retentionMs = Math.max(this.attempt.head.retentionMs, this.#rememberedMs)
    return { leaseMs: this.attempt.leaseMs, retentionMs }
  }

  get beginning(): Beginning {
    const { id, claimant, head } = this.attempt
    return { id, claimant, head, ...this.bounds }
  }

  /** The same attempt as a transaction, for the store to settle it or to leave a record of it. */
  asTransaction(): TransactionAttempt {
    const { id, claimant, head, deadline } = this.attempt
    return {
      id,
      claimant,
      previous: null,
      retentionMs: head.retentionMs,
      isolation: null,
      timeMaxMs: Math.max(1, deadline.leftMs),
      exclusive: false,
      strictTx: false,
    }
  }
}

/** Of an attempt that owns nothing yet, and so can lose nothing. */
const NEVER = new AbortController().signal

function pointAt(ageMs: number): { readonly ageMs: number; readonly since: Deadline } {
  return { ageMs, since: new Deadline(LIMITS.timerMaxMs) }
}
