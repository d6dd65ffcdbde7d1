import { AsyncLocalStorage } from 'node:async_hooks'
import { acrossCopies } from '../../copies.ts'
import { OnlyonceError } from '../../errors.ts'
import type { Queryable } from '../contract.ts'

/** A call that works behind a savepoint in a transaction of the caller's. */
interface SavepointCall {
  /** The call in whose function it was made, on the same object. */
  readonly around: SavepointCall | undefined
  /** Whether it may share its object with a call around it or inside it. */
  readonly shares: boolean
  over: boolean
}

/**
 * Which call works on which transaction. Savepoints are a stack: two calls side by side would undo each other's work, and one of them would be
 * told that its work is done. A call inside the function of another one is no trouble. The function of `within` is given a tx of its own to tell
 * it by; that of the inbox is not, so there the asynchronous context tells.
 */
const { calls, inside } = acrossCopies('savepoint_calls', () => ({
  calls: new WeakMap<Queryable, SavepointCall>(),
  inside: new AsyncLocalStorage<SavepointCall>(),
}))

/** Runs one call on a transaction, and refuses where another one is under way on it. `enter` runs a function of the caller's. */
export async function alone<T>(
  tx: Queryable,
  { shares }: Pick<SavepointCall, 'shares'>,
  run: (enter: <V>(work: () => Promise<V>) => Promise<V>) => Promise<T>,
): Promise<T> {
  const around = calls.get(tx)
  const nested = inside.getStore() === around && (around?.shares || shares)
  if (around !== undefined && !nested) throw new OnlyonceError('within_busy')
  const call: SavepointCall = { around, shares, over: false }
  calls.set(tx, call)
  try {
    return await run((work) => inside.run(call, work))
  } finally {
    call.over = true
    if (calls.get(tx) === call) leave(tx, call)
  }
}

/** A call that was not awaited may end after the one around it. */
function leave(tx: Queryable, call: SavepointCall): void {
  let back = call.around
  while (back?.over) back = back.around
  if (back === undefined) calls.delete(tx)
  else calls.set(tx, back)
}
