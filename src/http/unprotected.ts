import { OnlyonceError } from '../core/errors.ts'
import type { IdempotencyContext } from './context.ts'
import type { ResolvedPolicy } from './policy.ts'
import { problemReply } from './problem.ts'
import type { HttpReply } from './reply.ts'

/** All members of a context. */
const MEMBERS: Readonly<Record<keyof IdempotencyContext<unknown>, true>> = {
  account: true,
  operation: true,
  key: true,
  derivedKey: true,
  tx: true,
  input: true,
  signal: true,
  notExecuted: true,
  invalid: true,
}

/**
 * In place of the context, for a handler whose type has one, and a request whose method is not protected. Such a request passes
 * untouched. A handler that asks for its context then is told what is missing: it must not go on without its transaction.
 */
export class Unprotected {
  readonly #method: string
  readonly #methods: string

  constructor(method: string, { methods }: Pick<ResolvedPolicy, 'methods'>) {
    this.#method = method
    this.#methods = [...methods].join(', ')
  }

  static {
    for (const name of Object.keys(MEMBERS)) {
      const get = function (this: Unprotected): never {
        throw this.#missing(name)
      }
      Object.defineProperty(Unprotected.prototype, name, { get })
    }
  }

  #missing(name: string): OnlyonceError {
    const detail = `A request by ${this.#method} has no ${name}, because it is not protected. Protected here are ${this.#methods}: see methods.`
    return new OnlyonceError('setup_invalid', { detail })
  }
}

/** The context for a handler whose type has one. It is null only where the type says so, which is where keys are optional. */
export function contextFor<Given>(
  context: unknown,
  method: string,
  policy: Pick<ResolvedPolicy, 'key' | 'methods'>,
): Given {
  if (context !== null && context !== undefined) return context as Given
  return (policy.key === 'optional' ? null : new Unprotected(method, policy)) as Given
}

/**
 * What a request is answered that is not protected, on the route of a durable operation without a handler: there is nothing that it
 * could pass to. A success of the framework's own would say that the operation was done.
 */
export function unprotectedReply(
  method: string,
  policy: Pick<ResolvedPolicy, 'methods' | 'errors' | 'problemBase'>,
): HttpReply {
  if (policy.methods.has(method)) return problemReply(new OnlyonceError('key_missing'), policy)
  return { status: 405, headers: [['allow', [...policy.methods].join(', ')]], body: Buffer.alloc(0) }
}
