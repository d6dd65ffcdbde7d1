import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { OnlyonceError } from './errors.ts'
import { type Explanation, explain } from './explain.ts'
import { type KeyRing, keyRing, matches, prepareInput, type Secret, sign } from './fingerprint/index.ts'
import { checkKey, type KeyRules, keyRules, type ResolvedKeyRules, scopeOf } from './key/index.ts'
import { LIMITS } from './limits.ts'
import { Flights } from './protect/flights.ts'
import { type Outcome, runTransaction, type TransactionRequest } from './protect/transaction.ts'
import { runWithin } from './protect/within.ts'
import type { RecordId } from './record/index.ts'
import { Deadline } from './retry.ts'
import type { CrashPoint, Isolation, Queryable, Store } from './store/contract.ts'
import { decodeValue, encodeValue, type Stored } from './value.ts'

export interface OnlyonceOptions<Tx> {
  /** Where records live: `postgres(…)`, or `memory()` in tests. */
  readonly store: Store<Tx>
  /** At least 32 bytes, or a key ring: `{ current: 'b', keys: { a: …, b: … } }`. */
  readonly secret: Secret
  /** What keys are accepted. */
  readonly keys?: KeyRules
  /** How long a completed record replays, from its completion. */
  readonly retention_ms?: number
  /** How long one call may try, all its attempts together. */
  readonly deadline_ms?: number
  /** Called at named places; tests inject one that ends the process there. */
  readonly crash_point?: CrashPoint
}

/** One logical action: whose it is, what it does, and the key that names it. */
export interface ProtectedCall {
  readonly account: string
  readonly operation: string
  readonly key: string
  /** What the action was asked to do. The same key with another input is refused. */
  readonly input?: unknown
  readonly retention_ms?: number
  readonly deadline_ms?: number
}

export interface TransactionCall extends ProtectedCall {
  readonly isolation?: Isolation
  /** Duplicates in other processes are told `in_progress` before they run anything. Costs a round trip. */
  readonly exclusive?: boolean
}

/** What became of a protected call. Switch over `outcome`; there is no other case. */
export type Result<T> =
  | { readonly outcome: 'executed' | 'replayed'; readonly value: T }
  | { readonly outcome: 'in_progress'; readonly retry_after_ms: number }
  | { readonly outcome: 'key_reused' }
  | { readonly outcome: 'unknown'; readonly why: string; readonly retry_after_ms: number }
  | { readonly outcome: 'parked'; readonly why: string }

export interface Onlyonce<Tx> {
  /**
   * Runs work whose effects are all in the store's database: work, record and result are one transaction and
   * one commit. The effects happen once; the function itself may run again after a collision.
   *
   * @example
   * const result = await once.transaction(
   *   { account, operation: 'transfers.create', key, input },
   *   async (tx) => {
   *     const { rows } = await tx.query('INSERT INTO transfers (amount) VALUES ($1) RETURNING id', [input.amount])
   *     return { id: rows[0].id }
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
   * Tells the state of a key, every attempt, why it is so and what happens next.
   *
   * @example
   * const { state, why, next } = await once.explain({ account, operation, key })
   */
  explain(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>): Promise<Explanation>

  /** Checks the store now instead of at the first call. */
  start(): Promise<void>

  /** Takes no more work, lets what runs finish (up to a limit), and closes the store. */
  close(options?: { readonly max_ms?: number }): Promise<void>
}

/**
 * The front door.
 *
 * @example
 * const once = onlyonce({ store: postgres({ pool }), secret: process.env.ONLYONCE_SECRET })
 */
export function onlyonce<Tx>(options: OnlyonceOptions<Tx>): Onlyonce<Tx> {
  return new FrontDoor(options)
}

class FrontDoor<Tx> implements Onlyonce<Tx> {
  readonly #store: Store<Tx>
  readonly #ring: KeyRing
  readonly #rules: ResolvedKeyRules
  readonly #retention_ms: number
  readonly #deadline_ms: number
  readonly #crashPoint: CrashPoint
  readonly #flights = new Flights<Outcome>()
  /** Who we are in the history: a person can find the process by it. */
  readonly #owner = `${hostname()}/${process.pid}/${randomBytes(3).toString('hex')}`
  #started: Promise<void> | null = null
  #ready = false
  #closing: Promise<void> | null = null

  constructor(options: OnlyonceOptions<Tx>) {
    if (typeof options?.store?.transact !== 'function') {
      throw new OnlyonceError('option_invalid', { detail: 'Pass a store, for example postgres({ pool }).' })
    }
    this.#store = options.store
    this.#ring = keyRing(options.secret)
    this.#rules = keyRules(options.keys ?? {})
    this.#retention_ms = positive('retention_ms', options.retention_ms ?? LIMITS.retention_ms)
    this.#deadline_ms = positive('deadline_ms', options.deadline_ms ?? LIMITS.deadline_ms)
    this.#crashPoint = options.crash_point ?? (() => {})
  }

  async transaction<T>(call: TransactionCall, work: (tx: Tx) => Promise<T>): Promise<Result<Stored<T>>> {
    const request = this.#request(call)
    if (!this.#ready) await this.start()
    const boarding = this.#flights.board(request.id, request.fingerprint.digest, () =>
      runTransaction(this.#store, request, async (tx) => encodeValue(await work(tx)), this.#crashPoint),
    )
    if (boarding.role === 'refused') return { outcome: 'key_reused' }
    return resultOf<T>(await boarding.landed, boarding.role === 'joined')
  }

  async within<T>(
    tx: Queryable,
    call: ProtectedCall,
    work: (tx: Queryable) => Promise<T>,
  ): Promise<Result<Stored<T>>> {
    const request = this.#request(call)
    if (!this.#ready) await this.start()
    const outcome = await runWithin(
      this.#store,
      tx,
      request,
      async (inner) => encodeValue(await work(inner)),
      this.#crashPoint,
    )
    return resultOf<T>(outcome, false)
  }

  async explain(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>): Promise<Explanation> {
    const id = this.#idOf(call)
    if (!this.#ready) await this.start()
    return await explain(this.#store, id)
  }

  /** The store is asked until it has answered once; a database that is away now may be there later. */
  async start(): Promise<void> {
    this.#started ??= this.#store.start()
    try {
      await this.#started
      this.#ready = true
    } catch (error) {
      this.#started = null
      throw error
    }
  }

  close(options: { readonly max_ms?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(positive('max_ms', options.max_ms ?? LIMITS.close_max_ms))
    return this.#closing
  }

  async #close(max_ms: number): Promise<void> {
    const deadline = new Deadline(max_ms)
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline.left_ms)
    })
    await Promise.race([this.#flights.landed(), enough])
    clearTimeout(timer)
    await this.#store.close()
  }

  #request(call: TransactionCall): TransactionRequest {
    if (this.#closing !== null) throw new OnlyonceError('closed')
    const id = this.#idOf(call)
    const preimage = prepareInput({ operation: id.operation, input: call.input })
    return {
      id,
      owner: this.#owner,
      fingerprint: sign(this.#ring, preimage),
      matches: (stored) => matches(this.#ring, preimage, stored),
      retention_ms: positive('retention_ms', call.retention_ms ?? this.#retention_ms),
      deadline_ms: positive('deadline_ms', call.deadline_ms ?? this.#deadline_ms),
      isolation: isolationOf(call.isolation),
      exclusive: call.exclusive === true,
      rerun: true,
    }
  }

  #idOf(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>): RecordId {
    const { account, operation } = scopeOf(call.account, call.operation)
    return { account, operation, key: checkKey(call.key, this.#rules) }
  }
}

function resultOf<T>(outcome: Outcome, joined: boolean): Result<Stored<T>> {
  switch (outcome.outcome) {
    case 'executed':
    case 'replayed':
      return {
        outcome: joined ? 'replayed' : outcome.outcome,
        value: decodeValue(outcome.reply) as Stored<T>,
      }
    case 'unknown':
      return { outcome: 'unknown', why: outcome.failure.message, retry_after_ms: outcome.retry_after_ms }
    case 'parked':
      return { outcome: 'parked', why: outcome.failure.message }
    case 'in_progress':
    case 'key_reused':
      return outcome
    default:
      return outcome satisfies never
  }
}

function isolationOf(given: Isolation | undefined): Isolation | null {
  if (given === undefined || ISOLATIONS.includes(given)) return given ?? null
  throw new OnlyonceError('option_invalid', { detail: `isolation must be one of ${ISOLATIONS.join(', ')}.` })
}

const ISOLATIONS: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

function positive(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new OnlyonceError('option_invalid', {
      detail: `${name} must be a whole number of milliseconds, at least 1.`,
    })
  }
  return value
}
