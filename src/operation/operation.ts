/** What a durable operation is made of: its door, without anything that runs it. */
import { brandAcrossCopies } from '../core/copies.ts'
import { OnlyonceError } from '../core/errors.ts'
import type { StandardSchema } from '../core/standard-schema.ts'
import { operationName, operationVersion } from '../key/index.ts'
import { whyNotSendable } from '../protect/sendable.ts'
import type { Reply } from '../record/index.ts'
import { encodeValue, HTTP_SCHEMA, type Stored } from '../record/value.ts'
import type { Isolation, OpenTransaction, Queryable } from '../store/contract.ts'

/**
 * The answer of an operation as HTTP sends it; `reply()` makes it.
 *
 * @example
 * const isDeclined = (value: unknown) => value instanceof OperationReply && value.status === 402
 */
export class OperationReply<T> {
  readonly status: number
  readonly body: T
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, body: T, headers: Readonly<Record<string, string>>) {
    this.status = status
    this.body = body
    this.headers = headers
  }
}

brandAcrossCopies(OperationReply, 'operation_reply')

/**
 * Ends an operation with this answer. Returned from an atomic step, it becomes durable in the same commit as the
 * step's effects. 4xx commits too; throw to roll back.
 *
 * @example
 * const settle = operation('payments.settle', (op, { id }: { id: string }) => op.transaction('settled', async () => reply(201, { id })))
 */
export function reply(status: number): OperationReply<undefined>
export function reply<T>(
  status: number,
  body: T,
  headers?: Readonly<Record<string, string>>,
): OperationReply<T>
export function reply(status: number, body?: unknown, headers: Readonly<Record<string, string>> = {}) {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    throw new OnlyonceError('option_invalid', { detail: 'reply() takes a status from 200 to 599.' })
  }
  // What cannot be sent would be stored as the result, and every retry would fail on it.
  for (const [name, value] of Object.entries(headers)) {
    const detail = whyNotSendable(name, `${value}`)
    if (detail !== null) throw new OnlyonceError('option_invalid', { detail })
  }
  return new OperationReply(status, body, headers)
}

/** A reply, or any other value that an operation returned, as it is stored. */
export function encodeResult(value: unknown): Reply {
  if (!(value instanceof OperationReply)) return encodeValue(value)
  const { body } = encodeValue(value.body)
  const own = Object.entries(value.headers).map(([name, text]) => [name.toLowerCase(), `${text}`] as const)
  const typed = body!.length === 0 || own.some(([name]) => name === 'content-type')
  const headers = typed ? own : [JSON_TYPE, ...own]
  return { status: value.status, headers, body, schema: HTTP_SCHEMA, sealedBy: null }
}

const JSON_TYPE = ['content-type', 'application/json; charset=utf-8'] as const

/** What was found out about a call. `not_found` is no proof by itself: see `visibleWithinMs`. */
export type Found<T> =
  | { readonly status: 'found'; readonly result: T }
  | { readonly status: 'not_found' }
  | { readonly status: 'pending' }

/** What a call to the outside is given. */
export interface CallContext {
  /** The same on every attempt, in every process, after every deploy: pass it on as the other side's idempotency key. */
  readonly key: string
  /** Aborted when the time for the call is over, or the record has another owner. */
  readonly signal: AbortSignal
}

/**
 * A call that no rollback can undo. It may be made again, with the same key, by another process. What it returns,
 * a decline too, is its result. Throw `notExecuted()` where it is proved that nothing happened (a connection that was
 * refused, a 429), and `callRefused()` where the other side refuses for good what must not be refused. Anything else
 * that is thrown leaves its outcome in doubt: then `find` is asked.
 */
export interface CallStep<T> {
  readonly call: (context: CallContext) => Promise<T>
  /**
   * Checks what `call`, `find` or evidence gave, before it becomes durable: a function that gives back the result, or throws, or a schema
   * (zod, valibot, arktype). Evidence that does not pass is refused, and other evidence may take its place. What `call` gave and does not
   * pass leaves the outcome in doubt, as a throw does.
   *
   * @default any result is taken
   */
  readonly result?: ((value: unknown) => T | Promise<T>) | StandardSchema
  /**
   * How to learn the truth when the answer was lost.
   *
   * @default none: the outcome of a call whose answer was lost cannot be looked up
   */
  readonly find?: (context: CallContext) => Promise<Found<T>>
  /**
   * Whether the other side does a call with the same key only once. Without that, nothing is ever sent twice.
   *
   * @default true
   */
  readonly idempotent?: boolean
  /**
   * How long the call may take; at most two thirds of the lease.
   *
   * @default 10_000
   */
  readonly timeoutMs?: number
  /**
   * How long a call may stay unseen by `find` after it was sent: until then `not_found` proves nothing.
   *
   * @default 120_000
   */
  readonly visibleWithinMs?: number
  /**
   * How long the other side remembers keys. After that nothing is sent again; it is only looked.
   *
   * @default 86_400_000
   */
  readonly keyLifetimeMs?: number
}

/** What an atomic step gives back: a reply as it is, anything else as it was stored. */
export type StepResult<T> = T extends OperationReply<unknown> ? T : Stored<T>

/** What the function of an operation works with. */
export interface Op {
  readonly account: string
  readonly operation: string
  readonly key: string
  /** Aborted when the record has another owner, or the time for it is over. */
  readonly signal: AbortSignal

  /**
   * Effects in the store's database, in one transaction. It is serializable unless you say otherwise, and runs again
   * when it collides with others. When it throws, everything in it is rolled back, and no step follows: undo, return
   * or throw. What later steps depend on is returned.
   */
  transaction<T>(
    name: string,
    work: (tx: Queryable) => Promise<T>,
    options?: { readonly isolation?: Isolation },
  ): Promise<StepResult<T>>

  /** A call to the outside. */
  call<T>(name: string, step: CallStep<T>): Promise<Stored<T>>

  /**
   * How to undo what was just done, if the operation cannot go on: when it throws, or returns `op.undo(reply)`. Undos
   * run in reverse order; each is a step of its own.
   */
  compensate(name: string, undo: (tx: Queryable) => Promise<unknown>): void
  compensate(name: string, undo: CallStep<unknown>): void

  /** Undoes what was done, and then ends the operation with this reply. It never goes forward again. */
  undo<T>(reply: OperationReply<T>): Promise<OperationReply<T>>

  /** Writes an event of the operation's account in the transaction of a step: it is delivered if the step commits. */
  emit(tx: OpenTransaction, type: string, payload: unknown, options?: EmitOptions): Promise<void>

  /** Writes a job of the operation's account in the transaction of a step: it is run if the step commits. */
  stage(tx: OpenTransaction, job: string, payload: unknown, options?: StageOptions): Promise<void>
}

export interface EmitOptions {
  /**
   * What it happened to; events of one aggregate are delivered in order.
   *
   * @default none: the event has no order
   */
  readonly aggregate?: string
}

export interface StageOptions {
  /**
   * At most one such job with this key is there.
   *
   * @default none
   */
  readonly key?: string
  /** @default 0 */
  readonly runAfterMs?: number
}

/** A named durable function. Made by `operation()`. */
export interface Operation<Input, T> {
  readonly name: string
  readonly version: string
  readonly run: (op: Op, input: Input) => Promise<unknown>
  /** Only a type: what `once.run` gives back. */
  readonly value?: T
}

/** What `once.run` gives back for what the function returns. */
export type ValueOf<T> = Stored<T extends OperationReply<infer Body> ? Body : T>

/**
 * Names a durable function. Any process that knows it can resume it after a crash, from its last durable step; so
 * between steps it may depend on nothing but its input and the results of its steps. When its steps change, give it
 * a version, `payments.create@2`, and keep the one before as long as unfinished records name it. Neither the scope of
 * keys nor the keys of its calls depend on the version.
 *
 * @example
 * const createPayment = operation('payments.create', async (op, input: { amount: number }) => {
 *   const payment = await op.transaction('payment_created', (tx) => payments.insert(tx, input))
 *   const charge = await op.call('charged', {
 *     call: ({ key, signal }) => gateway.charge(payment, { key, signal }),
 *     find: ({ key }) => gateway.findByKey(key),
 *   })
 *   return op.transaction('settled', async (tx) => {
 *     await ledger.post(tx, payment, charge)
 *     await op.emit(tx, 'payment.captured', { id: payment.id })
 *     await op.stage(tx, 'send_receipt', { id: payment.id })
 *     return reply(201, { id: payment.id })
 *   })
 * })
 */
export function operation<Input, T>(
  name: string,
  run: (op: Op, input: Input) => Promise<T>,
): Operation<Input, ValueOf<T>> {
  const bare = operationName(name)
  if (bare.includes('@') || typeof run !== 'function') {
    throw new OnlyonceError('option_invalid', {
      detail:
        'operation() takes a name, such as payments.create, and a function. Behind an @ the name has a version, which is a whole number: payments.create@2.',
    })
  }
  return { name: bare, version: `${operationVersion(name) ?? 1}`, run }
}
