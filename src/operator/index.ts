/** What a person can see and decide where no program can know. */

import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { type Page, pageOf } from '../core/page.ts'
import { checkName } from '../key/index.ts'
import { signatureOf } from '../key/signature.ts'
import type { KeyName, Onlyonce } from '../onlyonce/door.ts'
import type { Engine } from '../onlyonce/engine.ts'
import { type Explanation, explain } from '../onlyonce/explain.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import { positive } from '../onlyonce/requests.ts'
import { throwWithoutRequest } from '../record/failure.ts'
import type { RecordId, Reply } from '../record/index.ts'
import type { Queryable } from '../store/contract.ts'
import type { AuditEntry, DecisionStore, RecordSummary, SeenWithin } from '../store/decisions.ts'
import { keepOpen } from '../store/keep-open.ts'
import { orMissingRight } from '../store/missing-right.ts'
import {
  type GivenUp,
  type GivingUp,
  givingUpStep,
  parkingStep,
  type Resolution,
  resolutionStep,
  type Signature,
  type Step,
  unparkingStep,
} from './decide.ts'
import { type Discarded, type Discarding, discardStep } from './discard.ts'
import { type ListOptions, listRequestOf, partsOf } from './list.ts'
import { resultsOf, type ShownResults } from './results.ts'

export type { Page } from '../core/page.ts'
export type { InDoubt } from '../onlyonce/explain.ts'
export type { GivenReply } from '../protect/given-reply.ts'
export type { Attempt, AttemptOutcome, Failure, State, StuckCount } from '../record/index.ts'
export type { AuditEntry, RecordSummary } from '../store/decisions.ts'
export type { GivenUp, GivingUp, Resolution, Signature } from './decide.ts'
export type { Discarded, Discarding, ShownDiscarded } from './discard.ts'
export type { ListOptions } from './list.ts'
export type { ShownEvidence, ShownResults, ShownStep } from './results.ts'

/** The whole story of one key. */
export interface Shown extends Explanation {
  /** Null where there is none, or none any more. */
  readonly record: RecordSummary | null
  /** What operators have decided, the oldest first; also about a record that was removed since. */
  readonly audit: readonly AuditEntry[]
  /** Only if it was asked for. */
  readonly reply: Reply | null
  /** Only if it was asked for; null where the record is of no operation. */
  readonly results: ShownResults | null
}

/** What is shown besides. Both may hold what customers have sent. */
export interface ShowOptions {
  /** @default false */
  readonly reply?: boolean
  /** @default false */
  readonly results?: boolean
}

export interface Operator {
  /**
   * Unfinished records of all accounts, the oldest attempt first; by options others, page by page.
   *
   * @example
   * const { items, cursor } = await operator(once).list({ states: ['unknown', 'parked'], limit: 100 })
   */
  list(options?: ListOptions): Promise<Page<RecordSummary>>

  /**
   * One record, its attempts and the decisions about it. Its reply, and with `results` what the steps of an unfinished operation have
   * brought and what was told about its calls, only if it is asked for.
   *
   * @example
   * const { state, why, attempts, audit } = await operator(once).show({ account, operation, key })
   */
  show(id: KeyName, options?: ShowOptions): Promise<Shown>

  /**
   * Settles what is unknown or parked: with the reply that every retry then gets, or, where you have made sure that
   * nothing happened, by letting the same request run again.
   *
   * @example
   * await operator(once).resolve(id, { by: 'ann', why: 'found at the gateway, ch_42', reply: { status: 201, body } })
   * await operator(once).resolve(id, { by: 'ann', why: 'the gateway has no trace of it', allowRetry: true })
   * await operator(once).resolve(id, { by: 'ann', why: 'it repeats an old 500', allowRetry: true, earlierCallIsVoid: true })
   */
  resolve(id: KeyName, resolution: Resolution): Promise<void>

  /**
   * Ends what is retryable for good, with the reply that every retry then gets: others need what the request holds, and it is
   * proved that nothing happened. A record that is not retryable is left alone. With `tx`, what the request held is let go of in the
   * same commit, so that no retry resumes it behind your back.
   *
   * @example
   * const { givenUp } = await operator(once).giveUp(id, { by: 'refunds', why: 'its share is needed', reply: { status: 409 }, tx })
   */
  giveUp(id: KeyName, given: GivingUp): Promise<GivenUp>

  /**
   * Says that the last durable step of an unfinished operation, a call, holds a wrong result: `find` matched another charge, for example. The
   * record is parked with that call in doubt again, and what was told about the call counts no more. Then tell the right result with
   * `addEvidence` and unpark the record, or decide as about any call in doubt. Refused where another step or call follows.
   *
   * @example
   * const { key } = await operator(once).discardResult(id, { by: 'ann', why: 'ch_7 is of another order', step: 'charged' })
   * await addEvidence(once, { account, key, result: { id: 'ch_8' }, by: 'ann', why: 'seen at the gateway' })
   * await operator(once).unpark(id, { by: 'ann', why: 'ch_8 is told' })
   */
  discardResult(id: KeyName, discarding: Discarding): Promise<Discarded>

  /** No more automatic attempts to find out what became of an unknown record. */
  park(id: KeyName, signature: Signature): Promise<void>

  /** Lets it be found out again. */
  unpark(id: KeyName, signature: Signature): Promise<void>
}

const DISCARDING: OptionNames<Discarding> = { by: true, why: true, fence: true, step: true }
const SIGNATURE: OptionNames<Signature> = { by: true, why: true, fence: true, tx: true }
const GIVING_UP: OptionNames<GivingUp> = { ...SIGNATURE, reply: true, retentionMs: true }
const RESOLUTION: OptionNames<Resolution> = {
  ...SIGNATURE,
  retentionMs: true,
  reply: true,
  allowRetry: true,
  earlierCallIsVoid: true,
}

/**
 * For those who may see and decide about the records of all accounts. Who that is, is yours to check.
 *
 * @example
 * const { items } = await operator(once).list()
 */
export function operator<Tx>(once: Onlyonce<Tx>): Operator {
  const engine = engineOf(once)
  const store = engine.store.decisions
  if (store === undefined) {
    throw new OnlyonceError('option_invalid', { detail: 'This store knows no operators. Use postgres(…).' })
  }
  return new Desk(engine, store)
}

class Desk<Tx> implements Operator {
  readonly #engine: Engine<Tx>
  readonly #store: DecisionStore

  constructor(engine: Engine<Tx>, store: DecisionStore) {
    this.#engine = engine
    this.#store = store
  }

  async list(options: ListOptions = {}): Promise<Page<RecordSummary>> {
    const request = listRequestOf(options)
    return await this.#list(request).catch(throwWithoutRequest)
  }

  async #list(request: ReturnType<typeof listRequestOf>): Promise<Page<RecordSummary>> {
    await this.#engine.startToLook()
    const found = await orMissingRight(() => this.#store.list({ ...request, limit: request.limit + 1 }))
    return pageOf(
      found,
      request.limit,
      ({ position }) => partsOf(position),
      ({ record }) => record,
    )
  }

  async show(id: KeyName, options: ShowOptions = {}): Promise<Shown> {
    refuseUnknown('operator.show()', options, { reply: true, results: true })
    const checked = this.#engine.requests.idToLookAt(id)
    return await orMissingRight(() => this.#show(checked, options)).catch(throwWithoutRequest)
  }

  async #show(checked: RecordId, options: ShowOptions): Promise<Shown> {
    await this.#engine.startToLook()
    const [told, record, audit, seen] = await Promise.all([
      explain(this.#engine.store, checked),
      this.#store.summary(checked),
      this.#store.audit(checked),
      options.reply === true ? this.#engine.store.look(checked) : null,
    ])
    const reply = seen?.record.state === 'completed' ? seen.record.reply : null
    const asked = options.results === true && record !== null && record.version !== null
    const results = asked ? await resultsOf(this.#engine.durable.store, record) : null
    return { ...told, record, audit, reply, results }
  }

  async resolve(id: KeyName, resolution: Resolution): Promise<void> {
    refuseUnknown('operator.resolve()', resolution, RESOLUTION)
    const { reply, allowRetry, earlierCallIsVoid } = resolution
    if ((reply === undefined) === (allowRetry !== true)) {
      throw new OnlyonceError('option_invalid', { detail: 'Pass either reply or allowRetry: true.' })
    }
    if (earlierCallIsVoid !== undefined && (earlierCallIsVoid !== true || reply !== undefined)) {
      const detail = 'earlierCallIsVoid: true goes with allowRetry: true, and with nothing else.'
      throw new OnlyonceError('option_invalid', { detail })
    }
    const givenMs = resolution.retentionMs
    if (givenMs !== undefined) positive('retentionMs', givenMs)
    await this.#decide(id, resolution, (seen) =>
      resolutionStep(seen, resolution, this.#retentionOf(seen, givenMs)),
    )
  }

  async giveUp(id: KeyName, given: GivingUp): Promise<GivenUp> {
    refuseUnknown('operator.giveUp()', given, GIVING_UP)
    const givenMs = given.retentionMs
    if (givenMs !== undefined) positive('retentionMs', givenMs)
    let state: GivenUp['state'] = 'none'
    const stepOf = (seen: SeenWithin | null) => {
      state = seen?.record.state ?? 'none'
      return givingUpStep(seen, given, this.#retentionOf(seen, givenMs))
    }
    for (let looks = 1; ; looks += 1) {
      try {
        return { givenUp: await this.#decide(id, given, stepOf), state }
      } catch (error) {
        // A caller came back to it in that very moment: what it is now is looked at once more.
        const changed = error instanceof OnlyonceError && error.code === 'record_changed'
        if (!changed || given.fence !== undefined || looks >= LIMITS.claimLooksMax) throw error
      }
    }
  }

  async discardResult(id: KeyName, discarding: Discarding): Promise<Discarded> {
    refuseUnknown('operator.discardResult()', discarding ?? {}, DISCARDING)
    const checked = this.#engine.requests.idToLookAt(id)
    const signed = signatureOf(discarding ?? {})
    const step = checkName(discarding.step, 'option_invalid')
    this.#engine.refuseWhenClosing()
    return await orMissingRight(() => this.#discard(checked, { ...signed, step })).catch(throwWithoutRequest)
  }

  async #discard(id: RecordId, given: Discarding): Promise<Discarded> {
    await this.#engine.start()
    const { store: operations } = this.#engine.durable
    const [seen, summary] = await Promise.all([this.#engine.store.look(id), this.#store.summary(id)])
    if (given.fence !== undefined && seen !== null && seen.record.fence !== given.fence) {
      throw new OnlyonceError('record_changed')
    }
    const progress = summary?.version == null ? null : await operations.progress(id)
    const request = discardStep(seen, summary, progress?.bytes ?? null, given)
    const { by, why } = given
    if (!(await operations.discard({ ...request, by, why }))) throw new OnlyonceError('record_changed')
    return { step: request.step, key: request.callKey }
  }

  async park(id: KeyName, signature: Signature): Promise<void> {
    refuseUnknown('operator.park()', signature ?? {}, SIGNATURE)
    await this.#decide(id, signature, (seen) => parkingStep(seen))
  }

  async unpark(id: KeyName, signature: Signature): Promise<void> {
    refuseUnknown('operator.unpark()', signature ?? {}, SIGNATURE)
    await this.#decide(id, signature, (seen) => unparkingStep(seen))
  }

  async #decide(
    id: KeyName,
    signature: Signature,
    stepOf: (seen: SeenWithin | null) => Step | null,
  ): Promise<boolean> {
    const checked = this.#engine.requests.idToLookAt(id)
    const signed = signatureOf(signature ?? {})
    const { tx } = signature
    this.#engine.refuseWhenClosing()
    const deciding = () => this.#takeStep(checked, signed, tx, stepOf)
    return tx === undefined ? await deciding() : await keepOpen(tx, deciding)
  }

  /** Looks, makes the next record of what was seen, and takes the step by what was seen: the later of two is told. */
  async #takeStep(
    checked: RecordId,
    { by, why, fence }: Signature,
    tx: Queryable | undefined,
    stepOf: (seen: SeenWithin | null) => Step | null,
  ): Promise<boolean> {
    await this.#engine.start().catch(throwWithoutRequest)
    const seen = await orMissingRight(() => this.#look(checked, tx)).catch(throwWithoutRequest)
    if (fence !== undefined && seen !== null && seen.record.fence !== fence) {
      throw new OnlyonceError('record_changed')
    }
    const step = stepOf(seen)
    if (step === null) return false
    const request = { id: checked, voidCall: null, ...step, by, why }
    const done = await orMissingRight(() => this.#store.decide(request, tx)).catch(throwWithoutRequest)
    if (!done) throw new OnlyonceError('record_changed')
    const { state } = step.to
    // Whether a transaction of the caller's commits is for the caller to know.
    if (tx === undefined && (state === 'completed' || state === 'retryable')) {
      this.#engine.observers.emit({ signal: 'reconcile_resolved', id: checked, state })
    }
    return true
  }

  /** Inside a transaction on its own connection: on a full pool a second one would never come. */
  async #look(id: RecordId, tx: Queryable | undefined): Promise<SeenWithin | null> {
    if (tx !== undefined) return await this.#store.lookWithin(tx, id)
    const [seen, summary] = await Promise.all([this.#engine.store.look(id), this.#store.summary(id)])
    if (seen === null) return null
    const { retentionMs = null, waitsFor = null, voidCalls = [] } = summary ?? {}
    return { ...seen, retentionMs, waitsFor, voidCalls }
  }

  /** As the operator says, or the operation, or `onlyonce()`. */
  #retentionOf(seen: SeenWithin | null, givenMs: number | undefined): number {
    return givenMs ?? seen?.retentionMs ?? this.#engine.requests.retentionMs
  }
}
