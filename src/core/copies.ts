/**
 * A process may hold several copies of the package: its ESM and its CommonJS build, or one copy each for an application and for a
 * library of the application. Objects of one copy are given to functions of another. So nothing may hang on the identity of a class,
 * of a WeakMap or of a symbol that each copy makes for itself.
 */

import { bears } from './thrown.ts'

/**
 * State that all copies share. The name ends with a number where its shape has changed: copies of different versions then keep apart.
 *
 * @example
 * const kept = acrossCopies('raw_bodies', () => new WeakMap<IncomingMessage, RequestBody>())
 */
export function acrossCopies<T extends object>(name: string, make: () => T): T {
  const place = Symbol.for(`onlyonce.${name}`)
  const shared = globalThis as unknown as Record<symbol, T | undefined>
  const known = shared[place]
  if (known !== undefined) return known
  const made = make()
  Object.defineProperty(globalThis, place, { value: made })
  return made
}

/**
 * Lets `instanceof` know the objects of every copy's class. Classes that extend it keep their own meaning of `instanceof`. It never
 * throws. An object that it accepts is one whose `members` can be read.
 *
 * @example
 * brandAcrossCopies(OnlyonceError, 'error', ['code'])
 */
export function brandAcrossCopies(
  type: { readonly prototype: object },
  name: string,
  members: readonly string[] = [],
): void {
  const brand = Symbol.for(`onlyonce.${name}`)
  Object.defineProperty(type.prototype, brand, { value: true })
  Object.defineProperty(type, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== type) return isKnownTo(this, value)
      return bears(value, brand, members)
    },
  })
}

function isKnownTo(type: unknown, value: unknown): boolean {
  try {
    return Function.prototype[Symbol.hasInstance].call(type, value)
  } catch {
    return false
  }
}
