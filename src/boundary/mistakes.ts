import { isMistake, type OnlyonceError } from '../errors.ts'
import type { Observers } from '../observe/index.ts'

/**
 * Tells the developer of a route what is wrong with the service. Its clients are told only what that means for their keys: what to
 * change is not for them to read, and they would not pass it on.
 */
export class Mistakes {
  readonly #observers: Observers
  readonly #route: string
  /** Codes of the table of errors: there are only so many. */
  readonly #told = new Set<string>()

  constructor(observers: Observers, route: string) {
    this.#observers = observers
    this.#route = route
  }

  tell(error: OnlyonceError): void {
    if (!isMistake(error.code)) return
    const first = !this.#told.has(error.code)
    this.#told.add(error.code)
    this.#observers.mistake(this.#route, error, first)
  }
}
