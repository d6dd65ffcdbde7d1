import { OnlyonceError } from '../errors.ts'
import { Deadline } from '../retry.ts'
import type { Owned, Store } from '../store/contract.ts'

/**
 * Signs of life of an owner, at a third of its lease. They come from the event loop on purpose: an owner whose
 * loop is stuck gives none, and is presumed dead. And they end: a promise that never settles must not own a key
 * for ever.
 */
export class Heartbeat<Tx> {
  readonly #store: Store<Tx>
  readonly #owned: Owned
  readonly #lease_ms: number
  readonly #end: Deadline
  readonly #onLost: () => void
  #lost: AbortController | null = null
  #reason: OnlyonceError | null = null
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(
    store: Store<Tx>,
    owned: Owned,
    bounds: { readonly lease_ms: number; readonly in_progress_max_ms: number },
    onLost: () => void,
  ) {
    this.#store = store
    this.#owned = owned
    this.#lease_ms = bounds.lease_ms
    this.#end = new Deadline(bounds.in_progress_max_ms)
    this.#onLost = onLost
    this.#plan()
  }

  /** Aborted when another owner has the record, or when the time for it is over. */
  get signal(): AbortSignal {
    // Made when it is first asked for: most work never asks, and one costs more than all the rest of this class.
    this.#lost ??= new AbortController()
    if (this.#reason !== null) this.#lost.abort(this.#reason)
    return this.#lost.signal
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #plan(): void {
    if (this.#stopped) return
    this.#timer = setTimeout(() => void this.#beat(), this.#lease_ms / 3)
    // Whoever works keeps the process alive by that work, not by saying that it works.
    this.#timer.unref()
  }

  #lose(reason: OnlyonceError): void {
    this.#reason = reason
    this.#lost?.abort(reason)
  }

  async #beat(): Promise<void> {
    const left_ms = this.#end.left_ms
    if (left_ms === 0) {
      this.#lose(new OnlyonceError('deadline_exceeded'))
      return
    }
    try {
      await this.#store.extend(this.#owned, Math.min(this.#lease_ms, left_ms))
    } catch (error) {
      // A store that is away is asked again with the next beat; the lease says how long that is good for.
      if (error instanceof OnlyonceError && error.code === 'lease_lost' && !this.#stopped) {
        this.#onLost()
        this.#lose(error)
        return
      }
    }
    this.#plan()
  }
}
