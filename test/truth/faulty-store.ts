import type { Store } from '../../src/index.ts'
import type { TransactionEnd } from '../../src/store/contract.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

/** What goes wrong, where, and whether it happened before the store had done it or after. */
export interface Injection {
  /** A method of the store, such as `claim` or `operations.write`. */
  readonly method: string
  readonly when: When
  readonly error: unknown
  /** How many calls of the method it strikes. */
  readonly times: number
}

/**
 * - `before`: nothing was done, and the error says so.
 * - `after`: it was done, and the error came in place of its answer.
 * - `failed`: of work in a transaction: it was rolled back, and this is why.
 * - `lost`: of work in a transaction: COMMIT was sent and not answered.
 */
export type When = 'before' | 'after' | 'failed' | 'lost'

/** Stores are shared by thousands of requests, each with a library of its own: they are started once, and stay open. */
const started = new WeakMap<object, unknown>()

/** A store that does what it is asked, but for the injections, each of which strikes so many times. */
export function faultyStore(store: Store<PostgresTx>, injections: readonly Injection[]): Store<PostgresTx> {
  const struck = new Map<Injection, number>()
  const wrap = <T extends object>(target: T, prefix: string): T =>
    new Proxy(target, {
      get(_, name) {
        const value = Reflect.get(target, name)
        if (name === 'operations' && value !== undefined) return wrap(value as object, 'operations.')
        if (name === 'close') return async () => {}
        if (typeof value !== 'function') return value
        if (name === 'start' && target === store) {
          return (...args: unknown[]) => {
            if (!started.has(store)) started.set(store, value.apply(target, args))
            return started.get(store)
          }
        }
        const call = (...args: unknown[]) => value.apply(target, args)
        const injection = injections.find(({ method }) => method === `${prefix}${String(name)}`)
        if (injection === undefined) return call
        return async (...args: unknown[]) => {
          const before = struck.get(injection) ?? 0
          if (before >= injection.times) return await call(...args)
          struck.set(injection, before + 1)
          return await strike(injection, () => call(...args))
        }
      },
    })
  return wrap(store, '')
}

async function strike({ when, error }: Injection, call: () => Promise<unknown>): Promise<unknown> {
  switch (when) {
    case 'before':
      throw error
    case 'after':
      await call()
      throw error
    case 'failed':
      return { end: 'failed', error } satisfies TransactionEnd<never>
    case 'lost': {
      const end = (await call()) as TransactionEnd
      return end.end === 'committed' ? { end: 'in_doubt', reply: end.reply, error } : end
    }
    default:
      return when satisfies never
  }
}
