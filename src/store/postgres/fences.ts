import { acrossCopies } from '../../core/copies.ts'
import { OnlyonceError } from '../../core/errors.ts'
import type { Queryable } from '../contract.ts'
import type { Transaction } from './open-transaction.ts'

/** Asks once more whether a lock is still held, in the transaction in which it was asked before. The object that it was asked through may be over by then. */
export type AskFence = (tx: Queryable) => Promise<void>

/**
 * The fences that were asserted inside a call which works behind a savepoint. A ROLLBACK TO that savepoint undoes the assertion too: a stale
 * holder could commit what it wrote before the call, and the next holder would not wait for the transaction. So the call asserts them again.
 * By transaction: the fence may be asserted through another object than the call.
 */
const asserted = acrossCopies('asserted_fences_2', () => new Map<Transaction['key'], AskFence[]>())

/** Noted before it is asked: an assertion that fails may be undone by a savepoint of the caller's. */
export function noteFence({ key }: Transaction, ask: AskFence): void {
  asserted.get(key)?.push(ask)
}

/**
 * Runs a call behind a savepoint. However the call ends, the fences that were asserted in it hold for the whole transaction afterwards, or the transaction is aborted and `fence_stale` is thrown.
 */
export async function carryFences<T>(tx: Queryable, { key }: Transaction, run: () => Promise<T>): Promise<T> {
  const around = asserted.get(key)
  const fences: AskFence[] = []
  asserted.set(key, fences)
  const end = await run().then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  )
  if (around === undefined) asserted.delete(key)
  else asserted.set(key, around)
  around?.push(...fences)
  for (const ask of fences) {
    await ask(tx).catch((error) => {
      // Any other error aborts the transaction too. What the call itself has thrown says more then.
      if ('value' in end || isStale(error)) throw error
    })
  }
  if ('error' in end) throw end.error
  return end.value
}

function isStale(error: unknown): boolean {
  return error instanceof OnlyonceError && error.code === 'fence_stale'
}
