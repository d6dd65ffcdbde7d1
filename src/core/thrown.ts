/**
 * How a value is read that others have thrown. It may be anything: an error whose getters throw, or a proxy that was revoked. A look at
 * it that throws itself would take the place of what it was to decide, for example that a call may have been made. So every look at a
 * thrown value goes through here, or through `instanceof OnlyonceError`, and none of them can throw.
 */
import { types } from 'node:util'

/**
 * Whether a thrown value is of a class.
 *
 * @example
 * if (isOfClass(error, Interrupted)) return error.stop
 */
export function isOfClass<T>(thrown: unknown, type: abstract new (...given: never[]) => T): thrown is T {
  try {
    return thrown instanceof type
  } catch {
    return false
  }
}

/**
 * A member of a thrown object; undefined where there is none, and where it cannot be read.
 *
 * @example
 * const status = memberOf(error, 'status')
 */
export function memberOf(thrown: unknown, name: string): unknown {
  try {
    return typeof thrown === 'object' && thrown !== null
      ? (thrown as Record<string, unknown>)[name]
      : undefined
  } catch {
    return undefined
  }
}

/**
 * Calls a function of the application's whose result is not waited for. It may be an async one, and a rejection that no code handles ends
 * the process; or its result may be an object of another promise library. Whatever goes wrong in it is given to `failed`, now or later.
 *
 * @example
 * const trace = callGuarded(() => observer.trace?.(call), warn)
 */
export function callGuarded<T>(call: () => T, failed: (error: unknown) => void): T | null {
  try {
    const value = call()
    if (isThenable(value)) Promise.resolve(value).catch(failed)
    return value
  } catch (error) {
    failed(error)
    return null
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  return typeof (value as { readonly then?: unknown }).then === 'function'
}

/**
 * Whether an object bears a mark, and these members can be read now and later: neither it nor what it inherits from is a proxy, and
 * none of them has a getter.
 */
export function bears(value: unknown, mark: symbol, members: readonly string[]): boolean {
  if (typeof value !== 'object') return false
  let marked = false
  for (let at = value; at !== null; at = Object.getPrototypeOf(at) as object | null) {
    if (types.isProxy(at)) return false
    for (const name of members) {
      if (Object.getOwnPropertyDescriptor(at, name)?.get !== undefined) return false
    }
    marked ||= Object.hasOwn(at, mark)
  }
  return marked
}
