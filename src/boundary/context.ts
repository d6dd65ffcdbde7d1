import type { HandlerContext } from '../protect/handler.ts'
import { handlerKey } from '../protect/recover.ts'
import type { RecordId } from '../record/index.ts'

/** What a handler finds on its request: `req.onlyonce`, `request.once`, `c.get('once')`, by framework. */
export interface OnceContext<Tx> {
  readonly account: string
  readonly operation: string
  readonly key: string
  /** The same on every attempt and in every process: for the other side, and what `recover` is asked with. */
  readonly derived_key: string
  /** The transaction that the handler's effects have to be in; only with `protect: 'transaction'`. */
  readonly tx: Tx
  /** Aborted when the record has another owner or its time is over. */
  readonly signal: AbortSignal
  /** Says that nothing was done, whatever the reply: the same request may run again. */
  notExecuted(): void
}

/** What the handler is given. Its signal is made when it is asked for: most never ask, and one costs some microseconds. */
export class Context<Tx> implements OnceContext<Tx> {
  readonly account: string
  readonly operation: string
  readonly key: string
  readonly tx: Tx
  readonly notExecuted: () => void
  nothing_done = false
  readonly #owner: Pick<HandlerContext, 'signal'>

  constructor({ account, operation, key }: RecordId, tx: Tx, owner: Pick<HandlerContext, 'signal'>) {
    this.account = account
    this.operation = operation
    this.key = key
    this.tx = tx
    this.#owner = owner
    // A function of its own, which can be handed on without its context.
    this.notExecuted = () => {
      this.nothing_done = true
    }
  }

  get derived_key(): string {
    return handlerKey(this)
  }

  get signal(): AbortSignal {
    return this.#owner.signal
  }
}
