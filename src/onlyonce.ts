import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type {
  HandlerCall,
  Onlyonce,
  OnlyonceOptions,
  ProtectedCall,
  Result,
  TransactionCall,
} from './door.ts'
import { OnlyonceError } from './errors.ts'
import { type Explanation, explain } from './explain.ts'
import { type KeyRing, keyRing, matches, prepareInput, sign } from './fingerprint/index.ts'
import { checkKey, keyRules, type ResolvedKeyRules, scopeOf } from './key/index.ts'
import { LIMITS } from './limits.ts'
import { Flights } from './protect/flights.ts'
import { type HandlerContext, type HandlerRequest, runHandler, type WorkEnd } from './protect/handler.ts'
import { type Outcome, runTransaction, type TransactionRequest } from './protect/transaction.ts'
import { runWithin } from './protect/within.ts'
import type { RecordId } from './record/index.ts'
import { Deadline } from './retry.ts'
import type { CrashPoint, Isolation, Owned, Queryable, Store } from './store/contract.ts'
import { decodeValue, encodeThrown, encodeValue, type Stored } from './value.ts'

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
  readonly #running = new Set<Owned>()
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

  async handler<T>(
    call: HandlerCall,
    work: (context: HandlerContext) => Promise<T>,
  ): Promise<Result<Stored<T>>> {
    const request = this.#handlerRequest(call)
    if (!this.#ready) await this.start()
    const boarding = this.#flights.board(request.id, request.fingerprint.digest, () =>
      runHandler(this.#store, request, (context) => endOf(work, context), this.#running, this.#crashPoint),
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
    await this.#handOver()
    await this.#store.close()
  }

  /** Ends the leases of what still runs, so that others need not wait for them. Best effort: they end anyway. */
  async #handOver(): Promise<void> {
    await Promise.allSettled([...this.#running].map((owned) => this.#store.extend(owned, 0)))
  }

  #handlerRequest(call: HandlerCall): HandlerRequest {
    const { id, owner, fingerprint, matches, retention_ms, deadline_ms } = this.#request(call)
    return {
      id,
      owner,
      fingerprint,
      matches,
      retention_ms,
      deadline_ms,
      lease_ms: positive('lease_ms', call.lease_ms ?? LIMITS.lease_ms),
      in_progress_max_ms: positive(
        'in_progress_max_ms',
        call.in_progress_max_ms ?? LIMITS.in_progress_max_ms,
      ),
      rerunnable: call.rerunnable === true,
    }
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

/** Runs work and tells how it ended. What cannot be stored has still been done, so it counts as thrown. */
async function endOf<T>(
  work: (context: HandlerContext) => Promise<T>,
  context: HandlerContext,
): Promise<WorkEnd> {
  try {
    return { end: 'reply', reply: encodeValue(await work(context)) }
  } catch (error) {
    const proved = error instanceof OnlyonceError && error.code === 'not_executed'
    return proved ? { end: 'not_executed', error } : { end: 'threw', error, reply: encodeThrown(error) }
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
