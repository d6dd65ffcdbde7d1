import { isMistake, OnlyonceError } from '../core/errors.ts'
import type { Observers } from '../observe/index.ts'

/**
 * Tells the developer of a route what is wrong with the service. Its clients are told only what that means for their keys: what to
 * change is not for them to read, and they would not pass it on.
 */
export class Mistakes {
  readonly #observers: Observers
  readonly #route: string
  /** Patterns of routes with codes of the table of errors: there are only so many. */
  readonly #told = new Set<string>()

  constructor(observers: Observers, route: string) {
    this.#observers = observers
    this.#route = route
  }

  /** `at` names the route of the request: a layer may stand before several, and be made before it knows any. */
  tell(error: OnlyonceError, at: string | null): void {
    if (!isMistake(error.code)) return
    const route = at ?? this.#route
    const what = `${route} ${error.code}`
    const first = !this.#told.has(what)
    this.#told.add(what)
    this.#observers.mistake(route, error, first)
  }

  /** A client that sends a key with a method that the layer leaves out believes that its request is protected. */
  tellIgnoredKey(method: string, hasKey: () => boolean): void {
    if (!CHANGES.has(method) || !hasKey()) return
    const detail = `A client sent a key with ${method}, which is not protected: the handler runs each time. Pass methods, for example ['${method}'].`
    this.tell(new OnlyonceError('option_invalid', { detail }), null)
  }
}

/** Methods that change something and are protected only where a route says so. */
const CHANGES: ReadonlySet<string> = new Set(['PUT', 'DELETE'])
