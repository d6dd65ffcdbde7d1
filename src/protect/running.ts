import type { Owned, Store } from '../store/contract.ts'
import { GiveBacks, type GivenBack } from './give-backs.ts'
import type { Heartbeat } from './heartbeat.ts'

/** What still ran when it was waited for no longer, by kind. Calls that only look or wait are not counted. */
export interface CutOff {
  readonly transactions: number
  readonly handlers: number
  readonly operations: number
}

/** The handlers of this process that own a record right now, until the process is closed. */
export class Running<Tx> {
  readonly #atWork = new Map<
    Owned,
    { readonly heartbeat: Heartbeat<Tx>; readonly kind: 'handlers' | 'operations' }
  >()
  #transactions = 0
  readonly #waits = new Map<Owned, NodeJS.Timeout>()
  readonly #saves = new Set<Promise<unknown>>()
  readonly #giveBacks = new GiveBacks()
  #over = false

  /** False when it is too late: leases have been handed over, and this one would not be. */
  begin(owned: Owned, heartbeat: Heartbeat<Tx>, kind: 'handlers' | 'operations'): boolean {
    if (this.#over) return false
    this.#atWork.set(owned, { heartbeat, kind })
    return true
  }

  /** Notes the timer by which the caller of this work is told that it is waited for no longer. */
  waitsBy(owned: Owned, timer: NodeJS.Timeout): void {
    this.#waits.set(owned, timer)
  }

  /** Its signs of life end with it. One that is under way is waited for by closing: it may still prolong the lease. */
  end(owned: Owned): void {
    const heartbeat = this.#atWork.get(owned)?.heartbeat
    this.#atWork.delete(owned)
    this.#waits.delete(owned)
    heartbeat?.stop()
    if (heartbeat?.underWay) void this.saving(heartbeat.quiet())
  }

  /** Notes a transaction from when its function begins, for which `run` calls back, until its COMMIT is answered. */
  transacting<T>(begin: () => void, run: (begins: () => void) => Promise<T>): Promise<T> {
    let counted = 0
    const ended = run(() => {
      this.#transactions += 1 - counted
      counted = 1
      begin()
    })
    const done = () => {
      this.#transactions -= counted
    }
    ended.then(done, done)
    return ended
  }

  /** Notes work that no caller waits for, so that closing does. */
  working<T>(work: Promise<T>): Promise<T> {
    return this.saving(work)
  }

  /** Notes a result on its way into its record: its caller may be gone before it is there. */
  saving<T>(saved: Promise<T>): Promise<T> {
    this.#saves.add(saved)
    const done = () => this.#saves.delete(saved)
    saved.then(done, done)
    return saved
  }

  /** A claim that executed nothing, and may stand all the same. */
  giveBack(store: Store<Tx>, given: GivenBack, leaseMs: number): void {
    this.#giveBacks.add(store, given, leaseMs)
  }

  /** Resolves when all results that are on their way now are saved, or given up, and no claim is left to be given back. */
  async saved(): Promise<void> {
    await Promise.allSettled([...this.#saves, this.#giveBacks.idle()])
  }

  /**
   * Ends the leases of what still runs, so that others need not wait for them. Best effort: they end anyway. The signs
   * of life stop first, and those that are under way are waited for a moment, or they would take the lease back. Callers may wait on; a process that
   * has nothing else to do does not stay for them. Gives back how many there were.
   */
  async handOver(store: Store<Tx>): Promise<CutOff> {
    this.#over = true
    const left = [...this.#atWork]
    const count = (kind: string) => left.filter(([, work]) => work.kind === kind).length
    const cutOff = {
      transactions: this.#transactions,
      handlers: count('handlers'),
      operations: count('operations'),
    }
    for (const timer of this.#waits.values()) timer.unref()
    const handOver = async ([owned, { heartbeat }]: (typeof left)[number]) => {
      await heartbeat.hush()
      await store.extend(owned, 0)
    }
    await Promise.allSettled(left.map(handOver))
    return cutOff
  }
}
