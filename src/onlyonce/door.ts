/** What one can ask of the front door, and what it answers. */

import type { Secret } from '../core/ring.ts'
import type { KeyRules } from '../key/index.ts'
import type { Observer } from '../observe/index.ts'
import type { Operation } from '../operation/operation.ts'
import type { HandlerContext } from '../protect/handler.ts'
import type { Recover } from '../protect/recover.ts'
import type { Stuck } from '../record/index.ts'
import type { Stored } from '../record/value.ts'
import type { CrashPoint, Isolation, Queryable, Store } from '../store/contract.ts'
import type { Explanation } from './explain.ts'
import type { IssuedKey } from './issuer.ts'

export interface OnlyonceOptions<Tx> {
  /** Where records live: `postgres(…)`, or `memory()` in tests. */
  readonly store: Store<Tx>
  /**
   * At least 32 bytes, or a key ring: `{ current: 'b', keys: { a: …, b: … } }`. Must be given where NODE_ENV is production.
   *
   * @default one that is made at the first start and kept in the store, with a warning at every start
   */
  readonly secret?: Secret | undefined
  /**
   * Turns encryption of stored replies on. The same forms as `secret`, with keys of their own. Records that were
   * stored before stay plain, and are replayed.
   *
   * @default none: replies are stored as they are
   */
  readonly encryption?: Secret
  /**
   * What keys are accepted.
   *
   * @default { lengthMin: 8, allowSensitive: false, issued: 'accepted' }
   */
  readonly keys?: KeyRules
  /**
   * How long a completed record replays, from its completion.
   *
   * @default 86_400_000
   */
  readonly retentionMs?: number
  /**
   * How long one call may try, all its attempts together.
   *
   * @default 60_000
   */
  readonly deadlineMs?: number
  /**
   * How large the body of a protected HTTP request may be, where its route does not say so itself.
   *
   * @default 1_048_576
   */
  readonly bodySizeMaxBytes?: number
  /**
   * For every transaction: see `TransactionCall`.
   *
   * @default false
   */
  readonly strictTx?: boolean
  /**
   * Milliseconds since the epoch, for the expiry of issued keys alone; records go by the store's clock.
   *
   * @default Date.now
   */
  readonly clock?: () => number
  /**
   * Who is told what happens: `prometheus(…)`, `openTelemetry(…)`, `logTo(logger)`, or your own; one or several.
   *
   * @default none
   */
  readonly observe?: Observer | readonly Observer[]
  /**
   * From which age on an unfinished record counts as stuck.
   *
   * @default 3_600_000
   */
  readonly stuckAfterMs?: number
  /**
   * How often stuck records are counted. Only where there is an observer.
   *
   * @default 60_000
   */
  readonly stuckCheckEveryMs?: number
  /**
   * Operations that this process can go on with, beside those it is asked to run: earlier versions, above all.
   *
   * @default none
   */
  readonly operations?: readonly Operation<never, unknown>[]
  /**
   * When a worker looks at what is in doubt, each counted from the look before; after the last it is parked.
   *
   * @default [2_000, 5_000, 15_000, 45_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000]
   */
  readonly reconcileAfterMs?: readonly number[]
  /**
   * How to find out what became of a handler that gave no outcome, by the name of its operation. Give it to every process
   * that runs workers or a background loop: the one that crashed may not come back.
   *
   * @example
   * const once = onlyonce({
   *   store,
   *   recover: {
   *     'orders.create': async ({ account, derivedKey, signal }) => {
   *       const order = await warehouse.findByReference(account, derivedKey, { signal })
   *       return order === null ? { status: 'cannot_tell' } : { status: 'found', reply: { status: 201, body: JSON.stringify({ id: order.id }) } }
   *     },
   *   },
   * })
   *
   * @default none
   */
  readonly recover?: Readonly<Record<string, Recover>>
  /**
   * How long after the end of its lease the owner of a handler may still answer before anybody looks, or parks.
   *
   * @default 30_000
   */
  readonly graceMs?: number
  /**
   * False: this process does nothing beside its requests. By default it looks after handlers whose lease is over and removes
   * expired records, in small batches. For functions that are frozen between requests; run workers somewhere else then.
   *
   * @default true
   */
  readonly background?: boolean
  /**
   * Called at named places; tests inject one that ends the process there.
   *
   * @default none
   */
  readonly crashPoint?: CrashPoint
}

/** What names the action: a key, or the members of the input that a key is made of. */
export type NamedBy<Member extends string = string> =
  | { readonly key: string; readonly keyFrom?: undefined }
  | {
      readonly key?: undefined
      /**
       * Members of `input` that name the action, for a caller that has no key to remember: `keyFrom: ['orderId']` is
       * `businessKey(operation, input.orderId)`. One that is missing, or is neither text nor a whole number, is refused.
       */
      readonly keyFrom: readonly Member[]
    }

interface CallOptions {
  readonly account: string
  readonly operation: string
  /** What the action was asked to do. The same key with another input is refused. */
  readonly input?: unknown
  /**
   * How long the completed record replays, from its completion.
   *
   * @default that of `onlyonce()`
   */
  readonly retentionMs?: number
  /**
   * How long this call may try, all its attempts together.
   *
   * @default that of `onlyonce()`
   */
  readonly deadlineMs?: number
}

interface TransactionOptions extends CallOptions {
  /** @default the database's own: `read committed`, unless it was set up otherwise */
  readonly isolation?: Isolation
  /**
   * Duplicates in other processes are told `in_progress` before they run anything. Costs a round trip.
   *
   * @default false
   */
  readonly exclusive?: boolean
  /**
   * Work that sends no statement on its `tx` is the error `transaction_unused`, and its record is unknown: what it wrote, if anything, is
   * elsewhere. A statement that only reads is enough.
   *
   * @default that of `onlyonce()`
   */
  readonly strictTx?: boolean
}

interface ExecuteOptions extends CallOptions {
  /**
   * How long the owner is presumed alive without a heartbeat. Heartbeats are sent at a third of it.
   *
   * @default 30_000
   */
  readonly leaseMs?: number
  /**
   * After this long no more heartbeats are sent, also where the work goes on.
   *
   * @default 300_000
   */
  readonly inProgressMaxMs?: number
  /**
   * You say that running the work twice does no harm: then a crash or a throw lets a retry run it again.
   *
   * @default false
   */
  readonly rerunnable?: boolean
}

interface RunOptions<Input> {
  readonly account: string
  /** Stored with the record, so that any process can go on: plain JSON values. */
  readonly input: Input
  /** @default that of `onlyonce()` */
  readonly retentionMs?: number
  /**
   * How long this call may try; after it, a worker that finishes the operation in the background begins no new call.
   *
   * @default that of `onlyonce()` for the caller, and no limit for workers
   */
  readonly deadlineMs?: number
  /**
   * How long the owner is presumed alive without a heartbeat. Calls to the outside take at most two thirds of it.
   *
   * @default 30_000
   */
  readonly leaseMs?: number
  /** @default 300_000 */
  readonly inProgressMaxMs?: number
}

/** One logical action: whose it is, what it does, and what names it. */
export type ProtectedCall = CallOptions & NamedBy

/** A call of `once.transaction()`. */
export type TransactionCall = TransactionOptions & NamedBy

/** A call of `once.execute()`. */
export type ExecuteCall = ExecuteOptions & NamedBy

/** A call of an operation, which brings its own name. */
export type RunCall<Input> = RunOptions<Input> & NamedBy<keyof Input & string>

/** A key in its scope. */
export interface KeyName {
  readonly account: string
  readonly operation: string
  readonly key: string
}

/** What a key is wanted for. */
export interface IssueKeyCall {
  readonly account: string
  readonly operation: string
  /**
   * How long the key may start something new; at most as long as records are kept. Its result replays afterwards too.
   *
   * @default 3_600_000
   */
  readonly expiresInMs?: number
}

/** What became of a protected call. Switch over `outcome`; there is no other case. */
export type Result<T> =
  | { readonly outcome: 'executed' | 'replayed'; readonly value: T }
  | { readonly outcome: 'in_progress'; readonly retryAfterMs: number }
  | { readonly outcome: 'key_reused' }
  | { readonly outcome: 'unknown'; readonly why: string; readonly retryAfterMs: number }
  | { readonly outcome: 'parked'; readonly why: string }

/** What became of an operation: as any other call, and with the status of its reply. */
export type RunResult<T> =
  | { readonly outcome: 'executed' | 'replayed'; readonly value: T; readonly status: number }
  | Exclude<Result<T>, { readonly value: unknown }>

export interface Onlyonce<Tx> {
  /**
   * Runs work whose effects are all in the store's database: work, record and result are one transaction and
   * one commit. The effects happen once; the function itself may run again after a collision.
   *
   * @example
   * const result = await once.transaction(
   *   { account, operation: 'transfers.create', key, input },
   *   async (tx) => {
   *     await tx.query('INSERT INTO transfers (id, amount) VALUES ($1, $2)', [id, input.amount])
   *     return { id }
   *   },
   * )
   */
  transaction<T>(call: TransactionCall, work: (tx: Tx) => Promise<T>): Promise<Result<Stored<T>>>

  /**
   * The same inside a transaction of your own, which it joins and never aborts. What it returns is true once
   * you have committed. One at a time on a transaction; another one inside the function takes the `tx` that the
   * function is given.
   *
   * @example
   * await client.query('BEGIN')
   * const result = await once.within(client, { account, operation, key, input }, async (tx) => ({ id }))
   * await client.query('COMMIT')
   */
  within<T>(
    tx: Queryable,
    call: ProtectedCall,
    work: (tx: Queryable) => Promise<T>,
  ): Promise<Result<Stored<T>>>

  /**
   * Protects work that no transaction can hold: claims the key, runs the work, stores the result. A throw is
   * stored too, because it may have come after an effect: it is never run twice, and a retry is told
   * `handler_failed`. Throw `notExecuted()` where you know that nothing happened, and `invalid()` where the request itself is wrong and
   * nothing was done yet. A crash leaves `unknown`.
   *
   * @example
   * const result = await once.execute({ account, operation: 'orders.create', key, input }, async ({ signal }) => {
   *   const order = await warehouse.reserve(input, { signal })
   *   return { id: order.id }
   * })
   */
  execute<T>(call: ExecuteCall, work: (context: HandlerContext) => Promise<T>): Promise<Result<Stored<T>>>

  /**
   * Runs a durable operation, or goes on with it where an earlier attempt stopped. When the outcome of a call to
   * the outside cannot be known, it is `unknown`, and the workers find out.
   *
   * @example
   * const result = await once.run(createPayment, { account, key, input: { amount: 500 } })
   */
  run<Input, T>(operation: Operation<Input, T>, call: RunCall<Input>): Promise<RunResult<T>>

  /**
   * Hands out a key for one action of this account. It is signed, and nothing is written, sent or awaited: no other
   * account or operation can use it, and once it has expired it starts nothing new. With
   * `keys: { issued: 'required' }` only such keys are accepted.
   *
   * @example
   * const { key, expiresAt } = once.issueKey({ account, operation: 'payments.create' })
   */
  issueKey(call: IssueKeyCall): IssuedKey

  /**
   * Tells the state of a key, every attempt, why it is so and what happens next.
   *
   * @example
   * const { state, why, next } = await once.explain({ account, operation, key })
   */
  explain(call: KeyName | ProtectedCall): Promise<Explanation>

  /**
   * Counts the records of all accounts that stay unfinished: in progress, unknown or parked for longer than
   * `stuckAfterMs`, or than you say.
   *
   * @example
   * const { in_progress: inProgress, unknown } = await once.stuck({ olderThanMs: 600_000 })
   * if (inProgress.count + unknown.count > 0) page(`the oldest is ${inProgress.oldestAgeMs} ms old`)
   */
  stuck(options?: { readonly olderThanMs?: number }): Promise<Stuck>

  /** Checks the store now instead of at the first call. */
  start(): Promise<void>

  /** Takes no more work, lets what runs finish (up to a limit), and closes the store. */
  close(options?: { readonly maxMs?: number }): Promise<void>
}
