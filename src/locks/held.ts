import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { Queryable } from '../store/contract.ts'
import type { HeldLock, LockStore } from '../store/locks.ts'

/** A lock that one has got. */
export interface Lock {
  readonly account: string
  readonly resource: string
  /** Rises with every holder of this resource, for ever. Pass it on to the store that can refuse a late writer. */
  readonly token: number
  /** Aborted when the lock is lost, or can be presumed so: stop. Only `assertFence` makes sure. */
  readonly lost: AbortSignal
  /** A sign of life of your own: held for the ttl from now on, or for longer if it was. Throws `fence_stale` when the lock is lost. */
  extend(ttlMs?: number): Promise<void>
  /** Gives the lock back. False, and nothing is changed, when it was lost before. */
  release(): Promise<boolean>
}

export interface HoldBounds {
  readonly ttlMs: number
  readonly autoExtend: boolean
  readonly holdMaxMs: number
}

/** What `assertFence` calls. Known to all copies of the package in a process. */
export const ASSERT_FENCE: unique symbol = Symbol.for('onlyonce.assert_fence')

/**
 * Keeps a lock alive at a third of its ttl, and tells when it is lost. That is presumed as soon as the ttl is over by this
 * process's monotonic clock, counted from before the last sign of life was sent: the database's own clock cannot be asked
 * by a process that was stopped, and at that moment another may have the lock.
 */
export class Holding implements Lock {
  readonly account: string
  readonly resource: string
  readonly token: number
  readonly #store: LockStore
  readonly #held: HeldLock
  readonly #bounds: HoldBounds
  readonly #lost = new AbortController()
  readonly #end: Deadline
  #lease: Deadline
  #timer: NodeJS.Timeout | undefined
  #unanswered = 0
  #released = false

  constructor(store: LockStore, held: HeldLock, bounds: HoldBounds, lease: Deadline) {
    this.account = held.id.account
    this.resource = held.id.resource
    this.token = held.token
    this.#store = store
    this.#held = held
    this.#bounds = bounds
    this.#lease = lease
    this.#end = new Deadline(bounds.holdMaxMs)
    this.#plan(bounds.autoExtend ? bounds.ttlMs / 3 : bounds.ttlMs)
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  async extend(ttlMs: number = this.#bounds.ttlMs): Promise<void> {
    checkTtl(ttlMs)
    const lease = new Deadline(ttlMs)
    if (this.#released || !(await this.#store.extend(this.#held, ttlMs))) throw this.#lose()
    this.#keep(lease)
    this.#plan(this.#bounds.autoExtend ? Math.min(ttlMs, this.#bounds.ttlMs) / 3 : this.#lease.leftMs)
  }

  async release(): Promise<boolean> {
    this.#released = true
    clearTimeout(this.#timer)
    return await this.#store.release(this.#held)
  }

  async [ASSERT_FENCE](tx: Queryable): Promise<void> {
    await this.#store.assertFence(tx, this.#held)
  }

  /** Never later than the end of the lease, which is told in time. */
  #plan(inMs: number): void {
    clearTimeout(this.#timer)
    if (this.#released || this.lost.aborted) return
    this.#timer = setTimeout(() => this.#beat(), Math.ceil(Math.min(inMs, this.#lease.leftMs)))
    // The work under the lock keeps the process alive by itself.
    this.#timer.unref()
  }

  #beat(): void {
    if (this.#lease.passed) {
      this.#lose()
      return
    }
    const { ttlMs, autoExtend } = this.#bounds
    this.#plan(autoExtend ? ttlMs / 3 : this.#lease.leftMs)
    if (!autoExtend || this.#end.passed || this.#unanswered >= UNANSWERED_MAX) return
    void this.#extendByItself(Math.ceil(Math.min(ttlMs, this.#end.leftMs)))
  }

  /** A sign of life does not wait for the one before it, which may be on a connection that has fallen silent. */
  async #extendByItself(ttlMs: number): Promise<void> {
    const lease = new Deadline(ttlMs)
    this.#unanswered += 1
    try {
      if (await this.#store.extend(this.#held, ttlMs)) {
        this.#keep(lease)
      } else if (!this.#released) this.#lose()
    } catch {
      // The store is away: it is asked again soon, and the lease says how long that is good for.
      this.#plan(this.#bounds.ttlMs / 12)
    } finally {
      this.#unanswered -= 1
    }
  }

  #keep(lease: Deadline): void {
    if (lease.leftMs > this.#lease.leftMs) this.#lease = lease
  }

  #lose(): OnlyonceError {
    clearTimeout(this.#timer)
    const error = new OnlyonceError('fence_stale')
    if (!this.#released) this.#lost.abort(error)
    return error
  }
}

/** More signs of life than this without an answer say nothing that the next one would not. */
const UNANSWERED_MAX = 4

/** There is no lock without an end: its holder may die. */
export function checkTtl(ttlMs: unknown): number {
  if (!Number.isSafeInteger(ttlMs) || (ttlMs as number) < 1 || (ttlMs as number) > LIMITS.lockTtlMaxMs) {
    throw new OnlyonceError('option_invalid', {
      detail: `A lock needs a ttlMs: a whole number of milliseconds from 1 to ${LIMITS.lockTtlMaxMs}.`,
    })
  }
  return ttlMs as number
}
