import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { Deadline } from '../../core/retry.ts'
import type { RecordId } from '../../record/index.ts'
import type { Flying } from './flying.ts'

interface Flight<T> {
  readonly digest: Buffer
  /** The span of the call that took off first. */
  readonly trace: string | null
  readonly landed: Promise<T>
  /** After this no caller joins any more: its record may have another owner by now. */
  readonly over: Deadline
  /** The first and all who joined. */
  callers: number
  /** Whether the work runs. Until then the first only finds out whether it is to run. */
  running: boolean
  /** Those who wish to know as soon as it runs. */
  readonly waiting: (() => void)[]
}

/** How a caller fares: alone and first, with another's flight, or not at all. */
export type Boarding<T> =
  | { readonly role: 'first'; readonly landed: Promise<T>; readonly flight: Flight<T> }
  /** Lands with null when the caller's own time is over first. */
  | { readonly role: 'joined'; readonly landed: Promise<T | null>; readonly flight: Flight<T> }
  /** The flight under way is that of another request with the same key, and its work runs. */
  | { readonly role: 'refused' }
  /** It is that of another request with the same key, and it may never run: null when the caller's own time is over first. */
  | {
      readonly role: 'aside'
      readonly cameTo: Promise<'runs' | 'landed' | null>
      readonly flight: Flight<T>
    }
  /** It is that of the same request, and the caller did not wish to wait for work that runs. */
  | { readonly role: 'busy'; readonly flight: Flight<T> }
  /** Whether anything runs is not known yet: null as soon as it does, or what the flight came to without it. */
  | { readonly role: 'undecided'; readonly landed: Promise<T | null>; readonly flight: Flight<T> }

interface BoardingOptions {
  readonly trace: string | null
  readonly duplicates: 'join' | 'refuse'
  /** How long a caller who joins waits. */
  readonly waitMaxMs: number
  /** How long others may join the flight that takes off here. */
  readonly flightMaxMs: number
}

/**
 * Duplicates inside one process share one flight: the first runs, the others wait for it without a database
 * connection of their own.
 */
export class Flights<T> {
  readonly #flights = new Map<string, Flight<T>>()
  #waiting = 0

  get size(): number {
    return this.#flights.size
  }

  /** Whether a caller that comes with this request now would be told by another's flight. */
  has({ id, fingerprint }: Pick<Flying, 'id' | 'fingerprint'>): boolean {
    const flight = this.#flights.get(addressOf(id))
    if (flight === undefined || flight.over.passed) return false
    return flight.running || flight.digest.equals(fingerprint.digest)
  }

  /** Resolves when all flights that are under way now have landed, well or not. */
  async landed(): Promise<void> {
    await Promise.allSettled([...this.#flights.values()].map(({ landed }) => landed))
  }

  /**
   * Runs `takeOff`, or joins the flight that has this id already. A flight with another fingerprint under the
   * same id is not joined: where its work runs, the key was reused. Until then either of the two may be the request that the
   * record is of. `takeOff` is given what it calls when the work begins to run.
   */
  board(
    id: RecordId,
    digest: Buffer,
    takeOff: (begin: () => void) => Promise<T>,
    options: BoardingOptions,
  ): Boarding<T> {
    const address = addressOf(id)
    const flight = this.#flights.get(address)
    if (flight === undefined || flight.over.passed) {
      const { trace, flightMaxMs } = options
      const begun = { running: false, waiting: [] as (() => void)[] }
      const landed = takeOff(() => {
        begun.running = true
        for (const tell of begun.waiting) tell()
      })
      const over = new Deadline(flightMaxMs)
      const first = Object.assign(begun, { digest, trace, landed, over, callers: 1 })
      this.#enter(address, first)
      return { role: 'first', landed, flight: first }
    }
    const same = flight.digest.equals(digest)
    if (!same && flight.running) return { role: 'refused' }
    const { duplicates, waitMaxMs } = options
    if (duplicates === 'refuse' && flight.running) return { role: 'busy', flight }
    if (this.#waiting >= LIMITS.waitingMax) throw new OnlyonceError('overloaded')
    if (!same) return { role: 'aside', cameTo: this.#wait(untilKnown(flight), waitMaxMs), flight }
    flight.callers += 1
    return duplicates === 'refuse'
      ? { role: 'undecided', landed: this.#wait(untilRunning(flight), waitMaxMs), flight }
      : { role: 'joined', landed: this.#wait(flight.landed, waitMaxMs), flight }
  }

  /** A caller that waits for it to land finds it gone already: no caller was there to wait before this. */
  #enter(address: string, flight: Flight<T>): void {
    this.#flights.set(address, flight)
    const leave = () => {
      if (this.#flights.get(address) === flight) this.#flights.delete(address)
    }
    flight.landed.then(leave, leave)
  }

  async #wait<J>(landed: Promise<J>, waitMaxMs: number): Promise<J | null> {
    this.#waiting += 1
    let timer: NodeJS.Timeout | undefined
    const over = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), Math.min(waitMaxMs, LIMITS.timerMaxMs))
    })
    try {
      return await Promise.race([landed, over])
    } finally {
      clearTimeout(timer)
      this.#waiting -= 1
    }
  }
}

function untilRunning<T>(flight: Flight<T>): Promise<T | null> {
  const running = new Promise<null>((resolve) => flight.waiting.push(() => resolve(null)))
  return Promise.race([running, flight.landed])
}

function untilKnown<T>(flight: Flight<T>): Promise<'runs' | 'landed'> {
  return untilRunning(flight).then(
    (landed) => (landed === null ? 'runs' : 'landed'),
    () => 'landed',
  )
}

/** The parts hold no control characters, so no two ids have the same address. */
export function addressOf({ account, operation, key }: RecordId): string {
  return `${account}\0${operation}\0${key}`
}
