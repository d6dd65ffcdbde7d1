import { acrossCopies } from '../core/copies.ts'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'

interface Waiter {
  readonly client: object
  /** Whether it opens a nested transaction, or is a single statement. */
  readonly takes: boolean
  grant(): void
  timer: NodeJS.Timeout
}

/**
 * Which client of a transaction has a nested transaction open. Savepoints are a stack: two nested transactions at once would undo each other's
 * statements, and a statement of neither would be undone with one of them. So all other clients wait until it has ended.
 *
 * A client that waits may be the very one that the nested transaction waits for, for example a query on the pool inside of it. So the wait ends with
 * an error when the nested transaction has sent nothing for a while.
 */
export class Seat {
  #holder: object | null = null
  /** Statements of the holder that are not answered yet. */
  #busy = 0
  #silence = new Deadline(LIMITS.nestedSilenceMaxMs)
  readonly #waiting: Waiter[] = []
  /** Of the whole transaction; asked once, when an ORM wants a certain level. */
  isolation: Promise<string> | null = null

  /** Whether a statement of this client has to wait. */
  blocks(client: object): boolean {
    return this.#holder !== null && this.#holder !== client
  }

  /** Runs a statement: at once where no other client has a nested transaction open, and afterwards where one has. */
  run<T>(client: object, send: () => Promise<T>): Promise<T> {
    if (this.#holder === client) return this.#hear(send())
    return this.#holder === null ? send() : this.#wait(client, false, send)
  }

  /** The same for the statement that opens a nested transaction: no other client sends anything until `leave`. */
  take<T>(client: object, send: () => Promise<T>): Promise<T> {
    if (this.#holder !== null) return this.#wait(client, true, send)
    this.#holder = client
    return this.#hear(send())
  }

  leave(client: object): void {
    if (this.#holder !== client) return
    this.#holder = null
    this.#busy = 0
    // Called in order and at once: what a client sends in the same turn of the event loop comes behind what has waited.
    while (this.#holder === null && this.#waiting.length > 0) {
      const next = this.#waiting.shift()!
      clearTimeout(next.timer)
      next.grant()
    }
  }

  /** Notes that the holder waits for an answer, and is not silent. */
  #hear<T>(sent: Promise<T>): Promise<T> {
    const holder = this.#holder
    this.#busy += 1
    const heard = () => {
      if (this.#holder !== holder) return
      this.#busy -= 1
      this.#silence = new Deadline(LIMITS.nestedSilenceMaxMs)
    }
    sent.then(heard, heard)
    return sent
  }

  #wait<T>(client: object, takes: boolean, send: () => Promise<T>): Promise<T> {
    if (this.#waiting.length >= LIMITS.nestedWaitingMax) return Promise.reject(busy())
    return new Promise((resolve, reject) => {
      const grant = () => {
        if (takes) this.#holder = client
        resolve(takes ? this.#hear(send()) : send())
      }
      const waiter: Waiter = { client, takes, grant, timer: this.#watch(() => waiter, reject, 0) }
      this.#waiting.push(waiter)
    })
  }

  #watch(waiter: () => Waiter, refuse: (error: Error) => void, inMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      const left = this.#busy > 0 ? LIMITS.nestedSilenceMaxMs : this.#silence.leftMs
      if (left > 0) {
        waiter().timer = this.#watch(waiter, refuse, left)
        return
      }
      this.#waiting.splice(this.#waiting.indexOf(waiter()), 1)
      refuse(busy())
    }, Math.ceil(inMs))
  }
}

function busy(): OnlyonceError {
  return new OnlyonceError('nested_transaction_busy')
}

/** By transaction: several pools and clients may be made of one, also by several copies of the package. */
const seats = acrossCopies('orm_seats', () => new WeakMap<object, Seat>())

export function seatOf(tx: object): Seat {
  const known = seats.get(tx)
  if (known !== undefined) return known
  const made = new Seat()
  seats.set(tx, made)
  return made
}
