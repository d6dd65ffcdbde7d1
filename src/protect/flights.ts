import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import type { RecordId } from '../record/index.ts'

interface Flight<T> {
  readonly digest: Buffer
  /** The span of the call that took off first. */
  readonly trace: string | null
  readonly landed: Promise<T>
  /** The first and all who joined. */
  callers: number
}

/** How a caller fares: alone and first, with another's flight, or not at all. */
export type Boarding<T> =
  | { readonly role: 'first' | 'joined'; readonly landed: Promise<T>; readonly flight: Flight<T> }
  /** The flight under way is that of another request with the same key. */
  | { readonly role: 'refused' }
  /** It is that of the same request, and the caller did not wish to wait. */
  | { readonly role: 'busy' }

/**
 * Duplicates inside one process share one flight: the first runs, the others wait for it without a database
 * connection of their own.
 */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>()
  #joined = 0

  get size(): number {
    return this.#flights.size
  }

  /** Resolves when all flights that are under way now have landed, well or not. */
  async landed(): Promise<void> {
    await Promise.allSettled([...this.#flights.values()].map(({ landed }) => landed))
  }

  /**
   * Runs `take_off`, or joins the flight that has this id already. A flight with another fingerprint under the
   * same id is not joined: the key was reused.
   */
  board(
    id: RecordId,
    digest: Buffer,
    trace: string | null,
    take_off: () => Promise<T>,
    duplicates: 'join' | 'refuse' = 'join',
  ): Boarding<T> {
    const address = addressOf(id)
    const flight = this.#flights.get(address)
    if (flight === undefined) {
      const first = { digest, trace, landed: take_off(), callers: 1 }
      return { role: 'first', landed: this.#fly(address, first), flight: first }
    }
    if (!flight.digest.equals(digest)) return { role: 'refused' }
    if (duplicates === 'refuse') return { role: 'busy' }
    if (this.#joined >= LIMITS.waiting_max) throw new OnlyonceError('overloaded')
    return { role: 'joined', landed: this.#join(flight), flight }
  }

  async #fly(address: string, flight: Flight<T>): Promise<T> {
    this.#flights.set(address, flight)
    try {
      return await flight.landed
    } finally {
      this.#flights.delete(address)
    }
  }

  async #join(flight: Flight<T>): Promise<T> {
    flight.callers += 1
    this.#joined += 1
    try {
      return await flight.landed
    } finally {
      this.#joined -= 1
    }
  }
}

/** The parts hold no control characters, so no two ids have the same address. */
export function addressOf({ account, operation, key }: RecordId): string {
  return `${account}\0${operation}\0${key}`
}
