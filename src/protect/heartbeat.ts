import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { atMost, Deadline } from '../core/retry.ts'
import type { Owned, Store } from '../store/contract.ts'

/**
 * Signs of life of an owner, at a third of its lease. They come from the event loop on purpose: an owner whose
 * loop is stuck gives none, and is presumed dead. And they end: a promise that never settles must not own a key
 * for ever.
 *
 * A beat does not wait for the one before it. That may be on a connection that has fallen silent, and by the time it
 * is given up the lease would be over.
 */
export class Heartbeat<Tx> {
  readonly #store: Store<Tx>
  readonly #owned: Owned
  readonly #leaseMs: number
  readonly #end: Deadline
  readonly #onLost: () => void
  readonly #onBeat: () => void
  readonly #listeners = new Set<(reason: OnlyonceError) => void>()
  #lost: AbortController | null = null
  #reason: OnlyonceError | null = null
  #timer: NodeJS.Timeout | undefined
  readonly #unanswered = new Set<Promise<void>>()
  #paused = false
  #stopped = false

  constructor(
    store: Store<Tx>,
    owned: Owned,
    bounds: { readonly leaseMs: number; readonly inProgressMaxMs: number },
    onLost: () => void,
    onBeat: () => void = () => {},
  ) {
    this.#store = store
    this.#owned = owned
    this.#leaseMs = bounds.leaseMs
    this.#end = new Deadline(bounds.inProgressMaxMs)
    this.#onLost = onLost
    this.#onBeat = onBeat
    this.#plan(this.#leaseMs / 3)
  }

  /** Aborted when another owner has the record, or when the time for it is over. */
  get signal(): AbortSignal {
    // Made when it is first asked for: most work never asks, and one costs more than all the rest of this class.
    this.#lost ??= new AbortController()
    if (this.#reason !== null) this.#lost.abort(this.#reason)
    return this.#lost.signal
  }

  /** No more signs of life: lost, handed over, or done. */
  get stopped(): boolean {
    return this.#stopped
  }

  /** Why the record is lost, or null. */
  get lost(): OnlyonceError | null {
    return this.#reason
  }

  /** Calls back when the record is lost; what is returned takes that back. Cheaper than a signal. */
  onLost(tell: (reason: OnlyonceError) => void): () => void {
    if (this.#reason !== null) tell(this.#reason)
    this.#listeners.add(tell)
    return () => this.#listeners.delete(tell)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /**
   * Its caller has given the work up. The timer of the heartbeat may be a moment behind, and is not waited for. Resolves when it is
   * quiet.
   */
  async timeIsOver(): Promise<void> {
    this.stop()
    if (this.#reason === null) this.#lose(timeOver())
    await this.quiet()
  }

  /** Whether a beat was sent that is neither answered nor given up. */
  get underWay(): boolean {
    return this.#unanswered.size > 0
  }

  /**
   * No more signs of life, and none under way either: one that arrives after the lease was handed over would take it back. Bounded,
   * because a beat may be on a connection that has fallen silent.
   */
  async hush(): Promise<void> {
    this.stop()
    if (this.underWay) await atMost(LIMITS.poolEndMaxMs, this.quiet())
  }

  /** Resolves when every beat that was sent has been answered or given up: from then on none can change the record. */
  async quiet(): Promise<void> {
    await Promise.all(this.#unanswered)
  }

  /**
   * No beats while a transaction of the owner's holds the row: one that came through would make a serializable
   * transaction fail, as often as it is run again. No other owner takes the record meanwhile; the row is locked.
   */
  pause(): void {
    this.#paused = true
  }

  /** The lease was counted anew by the transaction, or will be by the next beat. */
  resume(): void {
    this.#paused = false
    this.#plan(this.#leaseMs / 3)
  }

  /** Never later than the end, which is told in time. */
  #plan(inMs: number): void {
    if (this.#stopped) return
    clearTimeout(this.#timer)
    const waitMs = Math.min(inMs, this.#end.leftMs, LIMITS.timerMaxMs)
    this.#timer = setTimeout(() => this.#beat(), waitMs)
    // The work keeps the process alive, and not its signs of life.
    this.#timer.unref()
  }

  #beat(): void {
    const leftMs = this.#end.leftMs
    if (leftMs === 0) {
      this.#lose(timeOver())
      return
    }
    this.#plan(this.#leaseMs / 3)
    if (this.#paused || this.#unanswered.size >= UNANSWERED_MAX) return
    const beat = this.#extend(Math.ceil(Math.min(this.#leaseMs, leftMs)))
    this.#unanswered.add(beat)
    void beat.then(() => this.#unanswered.delete(beat))
  }

  /** Runs in a timer: what a store throws, at once or later, ends nothing but this beat. */
  async #extend(leaseMs: number): Promise<void> {
    try {
      this.#onBeat()
      await this.#store.extend(this.#owned, leaseMs)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** A store that is away is asked again soon; the lease says how long that is good for. */
  #failed(error: unknown): void {
    if (this.#stopped || this.#reason !== null) return
    if (!(error instanceof OnlyonceError && error.code === 'lease_lost')) {
      this.#plan(this.#leaseMs / 12)
      return
    }
    this.stop()
    this.#onLost()
    this.#lose(error)
  }

  #lose(reason: OnlyonceError): void {
    this.#reason = reason
    this.#lost?.abort(reason)
    for (const tell of this.#listeners) tell(reason)
  }
}

/** More than this many beats without an answer say nothing that the next one would not. */
const UNANSWERED_MAX = 4

function timeOver(): OnlyonceError {
  return new OnlyonceError('outcome_unknown', { detail: 'The time for this attempt is over.' })
}
