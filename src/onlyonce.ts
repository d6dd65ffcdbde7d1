import type {
  HandlerCall,
  IssueKeyCall,
  Onlyonce,
  OnlyonceOptions,
  ProtectedCall,
  Result,
  TransactionCall,
} from './door.ts'
import { OnlyonceError } from './errors.ts'
import { type Explanation, explain } from './explain.ts'
import type { IssuedKey } from './issuer.ts'
import { LIMITS } from './limits.ts'
import {
  type CallSignals,
  Observers,
  type Protection,
  StuckAlarm,
  signalsOf,
  WatchedStore,
} from './observe/index.ts'
import { Flights } from './protect/flights.ts'
import { type HandlerContext, type HandlerRequest, runHandler, type WorkEnd } from './protect/handler.ts'
import { type Outcome, runTransaction, type TransactionRequest } from './protect/transaction.ts'
import { runWithin } from './protect/within.ts'
import type { Stuck } from './record/index.ts'
import { positive, Requests } from './requests.ts'
import { Deadline } from './retry.ts'
import { keyRing, type Secret } from './ring.ts'
import { Seal } from './seal/index.ts'
import type { CrashPoint, Owned, Queryable, Store } from './store/contract.ts'
import { sealed } from './store/sealed.ts'
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
  readonly #requests: Requests
  readonly #seal: Seal
  readonly #crashPoint: CrashPoint
  readonly #flights = new Flights<Outcome>()
  readonly #running = new Set<Owned>()
  readonly #observers: Observers
  readonly #stuck_after_ms: number
  readonly #alarm: StuckAlarm
  #started: Promise<void> | null = null
  #ready = false
  #closing: Promise<void> | null = null

  constructor(options: OnlyonceOptions<Tx>) {
    if (typeof options?.store?.transact !== 'function') {
      throw new OnlyonceError('option_invalid', { detail: 'Pass a store, for example postgres({ pool }).' })
    }
    // Given and undefined is a setting that is missing, not a wish for plain text.
    const encrypted = 'encryption' in options
    this.#seal = new Seal(encrypted ? keyRing(options.encryption as Secret, 'reply') : null)
    this.#observers = new Observers(options.observe)
    const store = this.#observers.none ? options.store : new WatchedStore(options.store, this.#observers)
    // Without a ring too: it is told there that a reply is sealed, instead of taken for a plain one.
    this.#store = sealed(store, this.#seal)
    this.#requests = new Requests(options)
    this.#crashPoint = options.crash_point ?? (() => {})
    this.#stuck_after_ms = positive('stuck_after_ms', options.stuck_after_ms ?? LIMITS.stuck_after_ms)
    const every_ms = positive(
      'stuck_check_every_ms',
      options.stuck_check_every_ms ?? LIMITS.stuck_check_every_ms,
    )
    this.#alarm = new StuckAlarm((age_ms) => this.#store.stuck(age_ms), this.#observers, {
      older_than_ms: this.#stuck_after_ms,
      every_ms,
    })
  }

  async transaction<T>(call: TransactionCall, work: (tx: Tx) => Promise<T>): Promise<Result<Stored<T>>> {
    this.#refuseWhenClosing()
    const request = this.#requests.transaction(call)
    if (!this.#ready) await this.start()
    return await this.#fly<T, TransactionRequest>('transaction', request, (traced, signals) =>
      runTransaction(
        this.#store,
        traced,
        async (tx) => encodeValue(await work(tx)),
        this.#crashPoint,
        signals,
      ),
    )
  }

  async handler<T>(
    call: HandlerCall,
    work: (context: HandlerContext) => Promise<T>,
  ): Promise<Result<Stored<T>>> {
    this.#refuseWhenClosing()
    const request = this.#requests.handler(call)
    if (!this.#ready) await this.start()
    return await this.#fly<T, HandlerRequest>('handler', request, (traced, signals) =>
      runHandler(
        this.#store,
        traced,
        (context) => endOf(work, context),
        this.#running,
        this.#crashPoint,
        signals,
      ),
    )
  }

  async within<T>(
    tx: Queryable,
    call: ProtectedCall,
    work: (tx: Queryable) => Promise<T>,
  ): Promise<Result<Stored<T>>> {
    this.#refuseWhenClosing()
    const request = this.#requests.transaction(call)
    if (!this.#ready) await this.start()
    const signals = signalsOf(this.#observers, 'within', request.id)
    return await signals.run(async () => {
      const traced = withTrace(request, signals)
      const encoded = async (inner: Queryable) => encodeValue(await work(inner))
      const outcome = await runWithin(this.#store, tx, traced, encoded, this.#crashPoint, signals)
      signals.told(outcome)
      return resultOf<T>(outcome, false)
    })
  }

  issueKey(call: IssueKeyCall): IssuedKey {
    return this.#requests.issueKey(call)
  }

  async explain(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>): Promise<Explanation> {
    const id = this.#requests.idToLookAt(call)
    if (!this.#ready) await this.#startToLook()
    return await explain(this.#store, id)
  }

  async stuck(options: { readonly older_than_ms?: number } = {}): Promise<Stuck> {
    const older_than_ms = positive('older_than_ms', options.older_than_ms ?? this.#stuck_after_ms)
    if (!this.#ready) await this.start()
    return await this.#store.stuck(older_than_ms)
  }

  /** The store is asked until it has answered once; a database that is away now may be there later. */
  async start(): Promise<void> {
    this.#started ??= this.#store.start({ fingerprint: this.#requests.key_ids, reply: this.#seal.key_ids })
    try {
      await this.#started
      this.#ready = true
      this.#alarm.start()
    } catch (error) {
      this.#started = null
      throw error
    }
  }

  close(options: { readonly max_ms?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(positive('max_ms', options.max_ms ?? LIMITS.close_max_ms))
    return this.#closing
  }

  /** The story of a key is told without any key of ours, so that it can be asked why a start was refused. */
  async #startToLook(): Promise<void> {
    try {
      await this.start()
    } catch (error) {
      if (!(error instanceof OnlyonceError && error.code === 'key_ring_incomplete')) throw error
    }
  }

  /** Takes off, or joins whoever has taken off with this key already, and tells what came of it. */
  #fly<T, R extends Traceable>(
    protection: Protection,
    request: R,
    take_off: (traced: R, signals: CallSignals) => Promise<Outcome>,
  ): Promise<Result<Stored<T>>> {
    const signals = signalsOf(this.#observers, protection, request.id)
    return signals.run(async () => {
      const { id, fingerprint } = request
      const boarding = this.#flights.board(id, fingerprint.digest, signals.trace, () =>
        take_off(withTrace(request, signals), signals),
      )
      if (boarding.role === 'refused') {
        signals.told({ outcome: 'key_reused' })
        return { outcome: 'key_reused' }
      }
      const joined = boarding.role === 'joined'
      if (joined) signals.joined(boarding.flight.trace)
      try {
        const outcome = await boarding.landed
        signals.told(outcome)
        return resultOf<T>(outcome, joined)
      } finally {
        if (!joined) signals.landed(boarding.flight.callers)
      }
    })
  }

  #refuseWhenClosing(): void {
    if (this.#closing !== null) throw new OnlyonceError('closed')
  }

  async #close(max_ms: number): Promise<void> {
    const deadline = new Deadline(max_ms)
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, deadline.left_ms)
    })
    await Promise.race([Promise.all([this.#flights.landed(), this.#alarm.stop()]), enough])
    clearTimeout(timer)
    await this.#handOver()
    await this.#store.close()
  }

  /** Ends the leases of what still runs, so that others need not wait for them. Best effort: they end anyway. */
  async #handOver(): Promise<void> {
    await Promise.allSettled([...this.#running].map((owned) => this.#store.extend(owned, 0)))
  }
}

type Traceable = Pick<TransactionRequest, 'id' | 'fingerprint' | 'trace'>

/** The record is to name the span of its attempt. Untraced requests, the most, are not copied. */
function withTrace<R extends Traceable>(request: R, { trace }: CallSignals): R {
  return trace === null ? request : { ...request, trace }
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
