import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { atMost } from '../core/retry.ts'
import { type KeyRing, keyRing, type Secret } from '../core/ring.ts'
import { type CallSignals, Observers, type Protection, signalsOf, WatchedStore } from '../observe/index.ts'
import type { Operation } from '../operation/operation.ts'
import type { OperationRequest, ResumeEnd, ResumeRequest } from '../operation/run-operation.ts'
import { type HandlerContext, type HandlerRequest, runHandler, type WorkEnd } from '../protect/handler.ts'
import { throwSpent } from '../protect/proof.ts'
import { Running } from '../protect/running.ts'
import { Flights } from '../protect/single-flight/flights.ts'
import { type Flying, type TakeOff, withTrace } from '../protect/single-flight/flying.ts'
import { boardBehind, type Followed, follow } from '../protect/single-flight/follow.ts'
import { RecentReplies } from '../protect/single-flight/recent.ts'
import { type Outcome, runTransaction, type TransactionRequest } from '../protect/transaction.ts'
import { runWithin } from '../protect/within.ts'
import { wouldRun } from '../protect/would-run.ts'
import type { RecordId, Reply, Stuck } from '../record/index.ts'
import { Seal } from '../seal/index.ts'
import type { CrashPoint, Queryable, Store } from '../store/contract.ts'
import { sealed } from '../store/sealed.ts'
import type { OnlyonceOptions } from './door.ts'
import { checkDoorOptions } from './door-options.ts'
import { Durable } from './durable.ts'
import { type Explanation, explain } from './explain.ts'
import { madeSecretFor } from './made-secret.ts'
import { positive, Requests } from './requests.ts'
import { Upkeep } from './upkeep.ts'

/** Makes of an outcome what the caller is given. May throw: that is then what the caller is told. */
export type Present<T> = (outcome: Outcome, joined: boolean) => T

/** Whether a duplicate in this process waits for the first, or is told that it is in progress. */
export type Duplicates = 'join' | 'refuse'

/**
 * What runs protected calls for all who ask: the front door with typed values, or the HTTP boundary with replies.
 * It owns the store, the flights of this process, the signals, and the beginning and the end of all of them.
 */
export class Engine<Tx> {
  readonly requests: Requests
  /** As everybody goes to it: observed, and with what it keeps sealed. */
  readonly store: Store<Tx>
  readonly observers: Observers
  readonly crashPoint: CrashPoint
  /** Operations: what they need beside the rest. */
  readonly durable: Durable<Tx>
  /** What goes on beside the calls. */
  readonly upkeep: Upkeep<Tx>
  readonly #seal: Seal
  readonly #flights = new Flights<Outcome>()
  readonly #recent = new RecentReplies()
  readonly #running = new Running<Tx>()
  readonly #companions = new Set<() => Promise<void>>()
  #started: Promise<void> | null = null
  #ready = false
  #closing: Promise<void> | null = null

  constructor(options: OnlyonceOptions<Tx>) {
    checkDoorOptions(options)
    // Given and undefined is a setting that is missing, not a wish for plain text.
    const encrypted = 'encryption' in options
    this.#seal = new Seal(encrypted ? encryptionRing(options.encryption as Secret) : null)
    this.observers = new Observers(options.observe)
    const store = this.observers.none ? options.store : new WatchedStore(options.store, this.observers)
    // Without a ring too: it is told there that a reply is sealed, instead of taken for a plain one.
    this.store = sealed(store, this.#seal)
    this.requests = new Requests(options)
    this.crashPoint = options.crashPoint ?? (() => {})
    this.durable = new Durable(options, this.store, this.#running, this.observers, this.crashPoint)
    const { retentionMs } = this.requests
    const { catalog } = this.durable
    this.upkeep = new Upkeep(options, this.store, this.observers, this.crashPoint, retentionMs, catalog)
  }

  transaction<T>(
    request: TransactionRequest,
    work: (tx: Tx) => Promise<Reply>,
    present: Present<T>,
    duplicates: Duplicates = 'join',
  ): Promise<T> {
    return this.#fly('transaction', request, present, duplicates, (traced, signals, begin) => {
      const misused = this.observers.misusedTx(request.id)
      const { recovery } = this.upkeep
      return this.#running.transacting(begin, (begins) => {
        const begun = (tx: Tx) => {
          begins()
          return work(tx)
        }
        return runTransaction(this.store, traced, begun, recovery, this.crashPoint, signals, misused)
      })
    })
  }

  handler<T>(
    request: HandlerRequest,
    work: (context: HandlerContext) => Promise<WorkEnd>,
    present: Present<T>,
    duplicates: Duplicates = 'join',
  ): Promise<T> {
    return this.#fly('handler', request, present, duplicates, (traced, signals, begin) => {
      const begun = (context: HandlerContext) => {
        begin()
        return work(context)
      }
      const { recovery } = this.upkeep
      return runHandler(this.store, traced, begun, this.#running, recovery, this.crashPoint, signals)
    })
  }

  run<T>(
    request: OperationRequest,
    operation: Operation<unknown, unknown>,
    present: Present<T>,
    duplicates: Duplicates = 'join',
  ): Promise<T> {
    return this.#fly('operation', request, present, duplicates, (traced, signals, begin) => {
      return this.durable.run(traced, operation, signals, begin)
    })
  }

  /** Goes on with an operation whose caller is gone; for workers. Null when another came first. */
  async resume(request: Omit<ResumeRequest, 'owner'>): Promise<ResumeEnd> {
    if (!this.#ready) await this.#startForWork()
    this.refuseWhenClosing()
    return await this.#running.working(this.durable.resume({ ...request, owner: this.requests.owner }))
  }

  async within<T>(
    tx: Queryable,
    request: TransactionRequest,
    work: (tx: Queryable) => Promise<Reply>,
    present: Present<T>,
  ): Promise<T> {
    if (!this.#ready) await this.#startForWork()
    const signals = signalsOf(this.observers, 'within', request.id)
    const call = async () => {
      const traced = withTrace(request, signals)
      const outcome = await runWithin(this.store, tx, traced, work, this.crashPoint, signals)
      signals.told(outcome)
      return present(outcome, false)
    }
    return await signals.run(call).catch(throwSpent)
  }

  async explain(id: RecordId): Promise<Explanation> {
    if (!this.#ready) await this.startToLook()
    return await explain(this.store, id)
  }

  async stuck(olderThanMs: number | undefined): Promise<Stuck> {
    const ageMs = positive('olderThanMs', olderThanMs ?? this.upkeep.stuckAfterMs)
    if (!this.#ready) await this.start()
    return await this.store.stuck(ageMs)
  }

  /** The store is asked until it has answered once; a database that is away now may be there later. */
  async start(): Promise<void> {
    this.#started ??= this.#startStore()
    try {
      await this.#started
      this.#ready = true
      this.upkeep.start()
    } catch (error) {
      this.#started = null
      this.observers.startFailed(error)
      throw error
    }
  }

  async #startStore(): Promise<void> {
    const { requests } = this
    const seal = this.#seal
    const made = madeSecretFor(requests)
    await this.store.start({
      // Read when the store compares them, which is after it has given the secret that it keeps.
      get fingerprint() {
        return requests.keyIds
      },
      reply: seal.keyIds,
      digestOf: (purpose, keyId) =>
        purpose === 'fingerprint' ? requests.digestOf(keyId) : seal.digestOf(keyId),
      made,
    })
    made.taken()
  }

  /**
   * For those who make requests: where the secret is kept by the store, nothing can be fingerprinted before the start. Null where nothing has to be
   * waited for, which is nearly always.
   */
  secretKnown(): Promise<void> | null {
    return this.requests.lacksSecret ? this.#startForWork() : null
  }

  close(maxMs: number): Promise<void> {
    this.#closing ??= this.#close(maxMs)
    return this.#closing
  }

  refuseWhenClosing(): void {
    if (this.#closing !== null) throw new OnlyonceError('closed')
  }

  /**
   * A reply that was replayed a moment ago, without a promise or anything else that a call takes. Null where there is an
   * observer: the call is made then, so that the observer hears of it.
   */
  recall(request: Flying): Outcome | null {
    return this.#ready && this.observers.none ? this.#recent.find(request) : null
  }

  /**
   * Whether a request would begin to run now. One that is answered from what is known, that joins another's flight, or that
   * goes on with an attempt whose owner vanished, would not. Tells at once where no record has to be looked up: then
   * nothing comes between the answer and the call.
   */
  wouldRun(request: TransactionRequest): false | Promise<boolean> {
    if (this.#ready && (this.#recent.find(request) !== null || this.#flights.has(request))) return false
    const ready = this.#ready ? Promise.resolve() : this.#startForWork()
    return ready.then(() => wouldRun(this.store, request))
  }

  /**
   * Has something that works beside the calls, such as workers, stopped when the engine is closed. Gives back how to
   * take that wish back.
   */
  stopWithMe(stop: () => Promise<void>): () => void {
    this.refuseWhenClosing()
    this.#companions.add(stop)
    return () => this.#companions.delete(stop)
  }

  /** A caller that waited for the start may find that the end has begun meanwhile. */
  async #startForWork(): Promise<void> {
    await this.start()
    this.refuseWhenClosing()
  }

  /** The story of a key is told without any key of ours, so that it can be asked why a start was refused. */
  async startToLook(): Promise<void> {
    try {
      await this.start()
    } catch (error) {
      if (!(error instanceof OnlyonceError && error.code === 'key_ring_incomplete')) throw error
    }
  }

  /**
   * Takes off, or joins the call that has taken off with this key already, and tells what came of it.
   *
   * Few layers on purpose: each async function that waits takes half a kilobyte to two of memory, and a request in a
   * transaction took 54 kB, of which 24 were its framework's and its driver's.
   */
  #fly<T, R extends Flying>(
    protection: Protection,
    request: R,
    present: Present<T>,
    duplicates: Duplicates,
    takeOff: TakeOff<R>,
  ): Promise<T> {
    if (!this.#ready) {
      return this.#startForWork().then(() => this.#fly(protection, request, present, duplicates, takeOff))
    }
    const signals = signalsOf(this.observers, protection, request.id)
    const call = () => this.#tell(request, signals, present, duplicates, takeOff)
    return signals.run(call).catch(throwSpent)
  }

  async #tell<T, R extends Flying>(
    request: R,
    signals: CallSignals,
    present: Present<T>,
    duplicates: Duplicates,
    takeOff: TakeOff<R>,
  ): Promise<T> {
    const recent = this.#recent.find(request)
    if (recent !== null) {
      signals.told(recent)
      return present(recent, false)
    }
    const { id, fingerprint, deadlineMs, inProgressMaxMs = deadlineMs } = request
    const begun = (begin: () => void) => takeOff(withTrace(request, signals), signals, begin)
    // After `flightMaxMs` others may have the record: a later caller asks the store.
    const { trace } = signals
    const options = { trace, duplicates, waitMaxMs: deadlineMs, flightMaxMs: inProgressMaxMs }
    const board = () => this.#flights.board(id, fingerprint.digest, begun, options)
    const atOnce = board()
    const boarding = atOnce.role === 'aside' ? await boardBehind(atOnce, board) : atOnce
    let followed: Followed
    if (boarding.role !== 'first') followed = await follow(boarding, signals)
    else {
      try {
        followed = { outcome: await boarding.landed, joined: false }
      } finally {
        signals.landed(boarding.flight.callers)
      }
    }
    signals.told(followed.outcome)
    this.#recent.keep(request, followed.outcome)
    return present(followed.outcome, followed.joined)
  }

  async #close(maxMs: number): Promise<void> {
    const done = this.#flights.landed().then(() => this.#running.saved())
    const companions = [...this.#companions].map((stop) => stop())
    await atMost(maxMs, Promise.all([done, this.upkeep.stop(), ...companions]))
    this.observers.cutOff(await this.#running.handOver(this.store))
    // Those who came too late give their claims back; the store stays open for them a moment longer.
    await atMost(LIMITS.poolEndMaxMs, this.#running.saved())
    await this.store.close()
  }
}

function encryptionRing(encryption: Secret): KeyRing {
  try {
    return keyRing(encryption, 'reply')
  } catch (error) {
    throw new OnlyonceError('secret_invalid', { detail: 'This is about encryption.', cause: error })
  }
}
