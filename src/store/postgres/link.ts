import type { PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import type { Connections } from './connections.ts'
import { destroy, isGone } from './wire.ts'

/**
 * The connection of one transaction. Taken when it is first needed, so that work which waits for something
 * else beforehand holds nothing that others need; lost at most once; given back once.
 */
export class Link {
  readonly #connections: Connections
  #client: PoolClient | null = null
  #attaching: Promise<PoolClient> | null = null
  #released = false
  #onLost: ((error: unknown) => void) | null = null
  /** Set when the connection is gone or was ended by us; says why. */
  lost: unknown = null

  constructor(connections: Connections) {
    this.#connections = connections
  }

  get client(): PoolClient | null {
    return this.#client
  }

  attach(): Promise<PoolClient> {
    this.#attaching ??= this.#attach()
    return this.#attaching
  }

  /** The same, for a caller that would wait for a connection longer than the transaction has time. */
  attachInTime(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      this.onLost(reject)
      this.attach().then(resolve, reject)
    })
  }

  /** Tells once, when the connection is lost; at once, when it is lost already. */
  onLost(tell: (error: unknown) => void): void {
    this.#onLost = tell
    if (this.lost !== null) tell(this.lost)
  }

  lose(error: unknown): void {
    this.lost ??= error
    this.#onLost?.(this.lost)
  }

  /** Ends the connection ourselves. */
  cut(why: unknown): void {
    this.lose(why)
    if (this.#client !== null) destroy(this.#client)
  }

  release(): void {
    this.#released = true
    if (this.#client === null) return
    this.#connections.release(this.#client, this.lost === null ? undefined : (this.lost as Error))
    this.#connections.slots.release()
    this.#client = null
  }

  async #attach(): Promise<PoolClient> {
    const slot = this.#connections.slots.acquire()
    if (slot !== undefined) await slot
    let client: PoolClient
    try {
      client = await this.#connections.acquire()
    } catch (error) {
      this.#connections.slots.release()
      throw error
    }
    if (this.#released || this.lost !== null) {
      // The transaction was given up while it waited: what comes now is not used.
      this.#connections.release(client)
      this.#connections.slots.release()
      throw new OnlyonceError('transaction_over')
    }
    if (isGone(client)) {
      // Ended in the same breath in which it was given to us: no statement has been on it.
      const error = new OnlyonceError('store_unavailable')
      this.#connections.release(client, error)
      this.#connections.slots.release()
      throw error
    }
    this.#client = client
    this.#connections.onLost(client, (error) => this.lose(error))
    return client
  }
}
