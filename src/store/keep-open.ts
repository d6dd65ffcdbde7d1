import { AsyncLocalStorage } from 'node:async_hooks'
import { acrossCopies } from '../core/copies.ts'

/** Known to all copies of the package in a process. */
export const KEEP_OPEN: unique symbol = Symbol.for('onlyonce.keep_open')

/** What waits with its own end until the calls that were made on it have ended. */
export interface KeepsOpen {
  [KEEP_OPEN](call: Promise<unknown>): void
}

/** A call whose function runs: what is called inside on one of its objects is a part of it. */
export interface CallAround extends KeepsOpen {
  readonly over: boolean
  isOn(tx: object): boolean
}

/** The innermost call behind a savepoint in whose function the code runs that asks. */
export const inside = acrossCopies('inside_call', () => new AsyncLocalStorage<CallAround>())

/**
 * Makes a call on a transaction. The function of `once.transaction`, and that of a call behind a savepoint, may forget to await it: their end waits for
 * the call all the same. Noted before anything is awaited, or the function could return first.
 */
export async function keepOpen<T>(tx: object, call: () => Promise<T>): Promise<T> {
  const around = inside.getStore()
  const keeper = around !== undefined && !around.over && around.isOn(tx) ? around : tx
  const running = call()
  // A caller that is not typed may have given nothing at all; the call itself says so.
  ;(keeper as Partial<KeepsOpen> | undefined)?.[KEEP_OPEN]?.(running)
  // Another promise than the one that is waited for above: where it fails and is not awaited, the process still hears of it.
  return await running
}

/** The calls that something waits for with its end. */
export class OpenCalls {
  readonly #calls = new Set<Promise<unknown>>()

  get none(): boolean {
    return this.#calls.size === 0
  }

  add(call: Promise<unknown>): void {
    this.#calls.add(call)
    const end = () => this.#calls.delete(call)
    call.then(end, end)
  }

  /** Also waits for calls that are made by what follows from these. */
  async settled(): Promise<void> {
    while (this.#calls.size > 0) {
      await Promise.allSettled(this.#calls)
      await new Promise(setImmediate)
    }
  }
}
