import type { Queryable } from './contract.ts'

/** What is locked: never a resource alone. */
export interface LockId {
  readonly account: string
  readonly resource: string
}

/** Proof of having got a lock: its token, and a random id that no other holder has. */
export interface HeldLock {
  readonly id: LockId
  readonly token: number
  readonly holder: string
}

/** How one try for a lock ended. */
export type Acquisition =
  | { readonly got: 'lock'; readonly token: number }
  | { readonly got: 'nothing'; readonly retryAfterMs: number }

/**
 * Locks, where a store has them. The token of a resource rises with every holder, for ever: over releases, expiries and
 * restarts. Times are by the store's clock. A method that cannot reach the database throws `store_unavailable`.
 */
export interface LockStore {
  /** One try. Asked again by the same holder, whose first answer was lost, it gives the same token. */
  acquire(id: LockId, holder: string, ttlMs: number): Promise<Acquisition>

  /** A sign of life: it is held for the ttl from now on, or for longer if it was. False when another holder has the lock, or it was released. */
  extend(held: HeldLock, ttlMs: number): Promise<boolean>

  /** Gives the lock back. False, and nothing is changed, when it was not held any more. */
  release(held: HeldLock): Promise<boolean>

  /**
   * Makes sure, inside a transaction of the caller's, that no other holder gets the lock before that transaction has
   * ended. Throws `fence_stale` where another holder has it, and the transaction cannot commit then.
   */
  assertFence(tx: Queryable, held: HeldLock): Promise<void>
}
