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
import { Flights } from './protect/flights.ts'
import { type HandlerContext, runHandler, type WorkEnd } from './protect/handler.ts'
import { type Outcome, runTransaction } from './protect/transaction.ts'
import { runWithin } from './protect/within.ts'
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
    // Without a ring too: it is told there that a reply is sealed, instead of taken for a plain one.
    this.#store = sealed(options.store, this.#seal)
    this.#requests = new Requests(options)
    this.#crashPoint = options.crash_point ?? (() => {})
  }

  async transaction<T>(call: TransactionCall, work: (tx: Tx) => Promise<T>): Promise<Result<Stored<T>>> {
    this.#refuseWhenClosing()
    const request = this.#requests.transaction(call)
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
    this.#refuseWhenClosing()
    const request = this.#requests.handler(call)
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
    this.#refuseWhenClosing()
    const request = this.#requests.transaction(call)
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

  issueKey(call: IssueKeyCall): IssuedKey {
    return this.#requests.issueKey(call)
  }

  async explain(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>): Promise<Explanation> {
    const id = this.#requests.idToLookAt(call)
    if (!this.#ready) await this.#startToLook()
    return await explain(this.#store, id)
  }

  /** The store is asked until it has answered once; a database that is away now may be there later. */
  async start(): Promise<void> {
    this.#started ??= this.#store.start({ fingerprint: this.#requests.key_ids, reply: this.#seal.key_ids })
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

  /** The story of a key is told without any key of ours, so that it can be asked why a start was refused. */
  async #startToLook(): Promise<void> {
    try {
      await this.start()
    } catch (error) {
      if (!(error instanceof OnlyonceError && error.code === 'key_ring_incomplete')) throw error
    }
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
    await Promise.race([this.#flights.landed(), enough])
    clearTimeout(timer)
    await this.#handOver()
    await this.#store.close()
  }

  /** Ends the leases of what still runs, so that others need not wait for them. Best effort: they end anyway. */
  async #handOver(): Promise<void> {
    await Promise.allSettled([...this.#running].map((owned) => this.#store.extend(owned, 0)))
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
