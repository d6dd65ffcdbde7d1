import type { Journal } from './journal.ts'
import type { SeenRequest } from './wire.ts'

/** Of one key. More than these only raise the count. */
const KEPT_MAX = 1_000

interface Arrivals {
  count: number
  readonly requests: SeenRequest[]
}

/** Every request that brought a key, also those that had no effect: what shows that a key came twice and was charged once. */
export class SeenRequests {
  readonly #journal: Journal<SeenRequest>
  readonly #byKey = new Map<string, Arrivals>()

  constructor(journal: Journal<SeenRequest>) {
    this.#journal = journal
    for (const request of journal.lines) this.#keep(request)
  }

  /** In the order in which they came. */
  of(key: string): readonly SeenRequest[] {
    return this.#byKey.get(key)?.requests ?? []
  }

  add(seen: SeenRequest): {
    readonly seen: SeenRequest
    readonly nth: number
    readonly written: Promise<void>
  } {
    const nth = this.#keep(seen)
    const written = this.#journal.add(seen)
    // Not every request waits for it.
    written.catch(() => {})
    return { seen, nth, written }
  }

  /** Throws where arrivals cannot be written. */
  checkSound(): void {
    this.#journal.checkSound()
  }

  async close(): Promise<void> {
    await this.#journal.close()
  }

  #keep(seen: SeenRequest): number {
    const arrivals = this.#byKey.get(seen.key) ?? { count: 0, requests: [] }
    if (arrivals.count === 0) this.#byKey.set(seen.key, arrivals)
    arrivals.count += 1
    if (arrivals.count <= KEPT_MAX) arrivals.requests.push(seen)
    return arrivals.count
  }
}
