import { acrossCopies } from '../../../core/copies.ts'
import type { ProtectedCall } from './call.ts'

/** The metadata that holds the policy of a handler or a controller. */
export const POLICY = 'onlyonce:policy'

const handlers = acrossCopies('nest_handlers', () => new WeakSet<object>())

export function markProtected<T extends object>(handler: T): T {
  handlers.add(handler)
  return handler
}

/** Whether a handler asks for its protection itself: metadata may be inherited by one that does not. */
export function isProtected(handler: object): boolean {
  return handlers.has(handler)
}

/** Methods with a parameter for the transaction, by the prototype of their controller. */
const wanting = acrossCopies('nest_tx_wanted', () => new WeakMap<object, Set<string | symbol>>())

export function wantTx(prototype: object, name: string | symbol): void {
  const names = wanting.get(prototype) ?? new Set()
  wanting.set(prototype, names.add(name))
}

/** Parameters of a method that a controller inherits are those of the controller that declares it. */
export function wantsTx(prototype: object, name: string): boolean {
  for (let at: object | null = prototype; at !== null; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, name)) return wanting.get(at)?.has(name) === true
  }
  return false
}

// biome-ignore lint/suspicious/noExplicitAny: the store decides what a transaction is.
type AnyCall = ProtectedCall<any>

/** What the interceptor of a request has prepared for its handler. */
const calls = acrossCopies('nest_calls', () => new WeakMap<object, AnyCall>())

export function prepareCall(request: object, call: AnyCall): void {
  calls.set(request, call)
}

export function callOf(request: object): AnyCall | undefined {
  return calls.get(request)
}
