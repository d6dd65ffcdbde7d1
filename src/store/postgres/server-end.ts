import { errorMonitor } from 'node:events'
import type { Queryable } from '../contract.ts'
import { faultBehind } from './classify.ts'
import { endByServer } from './ends.ts'

/**
 * Why the server has ended a transaction of the caller's. It says so once: to the statement that waits then, perhaps one of the function's, or to the
 * client where none does. All later statements hear only that the connection is gone.
 */
export class ServerEnd {
  readonly #tx: Queryable
  #heard: unknown = null
  readonly #hear = (error: unknown): void => {
    if (endByServer(error) !== null) this.#heard ??= error
  }

  constructor(tx: Queryable) {
    this.#tx = tx
    // A client of pg is an emitter. This listener handles nothing, so what the caller is told does not change.
    emitterOf(tx)?.on(errorMonitor, this.#hear)
  }

  /** Hears what the function's statements are told, also where the function ignores it. */
  watch<T>(query: Promise<T>): Promise<T> {
    return query.catch((error) => {
      this.#hear(error)
      throw error
    })
  }

  /** What an error of a statement of ours means. */
  behind(error: unknown): unknown {
    const gone = faultBehind(error) === 'connection'
    return endByServer(error) ?? (gone ? endByServer(this.#heard) : null) ?? error
  }

  forget(): void {
    emitterOf(this.#tx)?.off(errorMonitor, this.#hear)
  }
}

interface Emitter {
  on(event: symbol, listen: (error: unknown) => void): unknown
  off(event: symbol, listen: (error: unknown) => void): unknown
}

function emitterOf(tx: Queryable): Emitter | null {
  const { on, off } = tx as Partial<Emitter>
  return typeof on === 'function' && typeof off === 'function' ? (tx as unknown as Emitter) : null
}
