import { acrossCopies } from '../../core/copies.ts'
import { OnlyonceError } from '../../core/errors.ts'
import { atMost } from '../../core/retry.ts'
import type { Queryable } from '../contract.ts'
import { type CallAround, inside, KEEP_OPEN, type KeepsOpen, OpenCalls } from '../keep-open.ts'
import { abortedIfLeftOpen, leaveOpen } from './left-open.ts'
import { remember, type Transaction, transactionOf } from './open-transaction.ts'

interface CallOptions {
  /** Whether it may share its object with a call around it or inside it. */
  readonly shares: boolean
  /** The tx that its function is given, where it has one of its own. */
  readonly inner?: Queryable
  /** How long calls may take that its function has not awaited, from the end of the function on. */
  readonly unawaitedMaxMs: number
}

type Enter = <V>(work: () => Promise<V>) => Promise<V>

/** A call that works behind a savepoint in a transaction. */
class SavepointCall implements CallAround {
  /** The call in whose function it was made, in the same transaction. */
  readonly around: SavepointCall | undefined
  readonly #tx: Queryable
  readonly transaction: Transaction
  readonly #options: CallOptions
  readonly #calls = new OpenCalls()
  over = false

  constructor(
    around: SavepointCall | undefined,
    tx: Queryable,
    transaction: Transaction,
    options: CallOptions,
  ) {
    this.around = around
    this.#tx = tx
    this.transaction = transaction
    this.#options = options
  }

  /** The object of the caller's own: the function of a call is given one that sends nothing once the transaction is aborted. */
  get outermost(): Queryable {
    return this.around?.outermost ?? this.#tx
  }

  isOn(tx: object): boolean {
    return tx === this.#tx || tx === this.#options.inner
  }

  /**
   * Whether a call on this object was made inside of the function. That of `within` is given a tx of its own to tell it by; that of the inbox is not,
   * so there the asynchronous context tells.
   */
  contains(tx: Queryable, { shares }: CallOptions): boolean {
    if (tx === this.#options.inner) return true
    return inside.getStore() === this && (this.#options.shares || shares || tx !== this.#tx)
  }

  [KEEP_OPEN](call: Promise<unknown>): void {
    this.#calls.add(call)
  }

  /** Runs the function, and waits for the calls that it has made and not awaited: their savepoints are inside of this one's. */
  async enter<V>(work: () => Promise<V>): Promise<V> {
    try {
      return await inside.run(this, work)
    } finally {
      if (!this.#calls.none) await this.#settled()
    }
  }

  /** A transaction of the library's own has a time for all of it, and is ended then. */
  async #settled(): Promise<void> {
    const { unawaitedMaxMs } = this.#options
    const settled = this.#calls.settled()
    if (this.transaction.xid === null) return await settled
    await atMost(unawaitedMaxMs, settled)
    if (!this.#calls.none) throw leaveOpen(this.transaction, unawaitedMaxMs)
  }
}

/**
 * Which call works on which transaction. Savepoints are a stack: two calls side by side would undo each other's work, and one of them would be
 * told that its work is done. By transaction and not by object: two objects may lead to one connection. A call inside the function of another one is no trouble.
 */
const running = acrossCopies('savepoint_calls_2', () => new Map<Transaction['key'], SavepointCall>())

/** Runs one call on a transaction, and refuses where another one is under way on it. `enter` runs a function of the caller's. */
export async function alone<T>(
  tx: Queryable,
  options: CallOptions,
  run: (transaction: Transaction, enter: Enter) => Promise<T>,
): Promise<T> {
  const asked = await transactionOf(tx)
  const { key } = asked
  const around = running.get(key)
  // Asked through another object, it is the same one.
  const transaction = around?.transaction ?? asked
  if (around !== undefined && !around.contains(tx, options)) throw new OnlyonceError('within_busy')
  const call = new SavepointCall(around, tx, transaction, options)
  running.set(key, call)
  const forgets = [tx, options.inner].map((on) => (on === undefined ? () => {} : remember(on, transaction)))
  try {
    const done = run(transaction, (work) => call.enter(work))
    // For an object around a transaction of the library's: only now it is known whose it is.
    if (typeof key === 'object') (key as Partial<KeepsOpen>)[KEEP_OPEN]?.(done)
    return await abortedIfLeftOpen(call.outermost, transaction, done)
  } finally {
    call.over = true
    for (const forget of forgets) forget()
    if (running.get(key) === call) leave(key, call)
    // What was left open does not leave by itself.
    if (transaction.leftOpen !== null && call.around === undefined) running.delete(key)
  }
}

/** A call that was not awaited may end after the one around it. */
function leave(key: Transaction['key'], call: SavepointCall): void {
  let back = call.around
  while (back?.over) back = back.around
  if (back === undefined) running.delete(key)
  else running.set(key, back)
}
