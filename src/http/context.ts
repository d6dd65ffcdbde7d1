import { OnlyonceError } from '../core/errors.ts'
import { type InvalidAnswer, invalid, isClientError } from '../core/invalid.ts'
import type { HandlerContext } from '../protect/handler.ts'
import { provesNothingDone } from '../protect/proof.ts'
import { handlerKey } from '../protect/recover.ts'
import type { RecordId } from '../record/index.ts'

/** What the handler of every protected request is given. */
export interface RequestContext {
  readonly account: string
  readonly operation: string
  readonly key: string
  /** The same on every attempt and in every process: for the other side, and what `recover` is asked with. */
  readonly derivedKey: string
  /** Aborted when the record has another owner or its time is over. */
  readonly signal: AbortSignal
  /**
   * Says that nothing was done, beside any reply: the same request may run again. Given an error that `notExecuted()` of the
   * package has made, the client is answered with that in place of the reply.
   */
  notExecuted(thrown?: unknown): void
  /**
   * Says that the request itself is wrong and that nothing was done, so that a corrected one runs under the same key. The answer
   * given here is sent; without one it is the reply of the handler, which has to be from 400 to 499: any other is stored.
   */
  invalid(answer?: InvalidAnswer): void
}

/** What a handler finds on its request: `req.idempotency`, `request.idempotency`, `c.var.idempotency`, by framework. */
export interface IdempotencyContext<Tx> extends RequestContext {
  /** The transaction that the handler's effects have to be in; only with `protect: 'transaction'`. */
  readonly tx: Tx
  /** What the schema of the route has made of the body; only with `validate`. */
  readonly input?: unknown
}

/** What the handler is given. Its signal is made when it is asked for: most never ask, and one costs some microseconds. */
export class Context<Tx> implements IdempotencyContext<Tx> {
  readonly account: string
  readonly operation: string
  readonly key: string
  readonly notExecuted: (thrown?: unknown) => void
  readonly invalid: (answer?: InvalidAnswer) => void
  readonly input: unknown
  /** Whether a throw undoes what the handler did. */
  readonly rollsBack: boolean
  nothingDone = false
  /** That nothing was done, as the handler has thrown it. */
  statement: unknown = null
  #invalid: OnlyonceError | 'own_reply' | null = null
  /**
   * What the handler threw; null where it is not known to have thrown. Where it had replied before, the reply is none that its framework
   * has made of the error.
   */
  thrown: { readonly error: unknown; readonly hadReplied: boolean } | null = null
  /** A function of its own, which can be handed on without its context. */
  readonly hear = (error: unknown, hadReplied: boolean): void => {
    this.thrown = { error, hadReplied }
  }
  readonly #tx: Tx | null
  readonly #owner: Pick<HandlerContext, 'signal'>

  constructor(
    { account, operation, key }: RecordId,
    tx: Tx | null,
    owner: Pick<HandlerContext, 'signal'>,
    rollsBack = false,
    input?: unknown,
  ) {
    this.account = account
    this.operation = operation
    this.key = key
    this.#tx = tx
    this.#owner = owner
    this.rollsBack = rollsBack
    this.input = input
    // A function of its own, which can be handed on without its context.
    this.notExecuted = (thrown) => {
      this.nothingDone = true
      if (provesNothingDone(thrown)) this.statement = thrown
    }
    this.invalid = (answer) => {
      this.#invalid = answer === undefined ? 'own_reply' : invalid(answer)
    }
  }

  /** What the handler has said of its request, given that it replied with this status. Null where it has not called it invalid. */
  invalidWith(status: number): { readonly error: OnlyonceError; readonly ownReply: boolean } | null {
    if (this.#invalid === null) return null
    if (this.#invalid !== 'own_reply') return { error: this.#invalid, ownReply: false }
    return isClientError(status) ? { error: invalid({ status }), ownReply: true } : null
  }

  get tx(): Tx {
    if (this.#tx === null) throw new OnlyonceError('option_invalid', { detail: NO_TRANSACTION })
    return this.#tx
  }

  get derivedKey(): string {
    return handlerKey(this)
  }

  get signal(): AbortSignal {
    return this.#owner.signal
  }
}

const NO_TRANSACTION = "This route has no transaction. Pass protect: 'transaction' to get tx."
