/** What a person can see and decide where no program can know. */
import type { Onlyonce, ProtectedCall } from '../door.ts'
import type { Engine } from '../engine.ts'
import { OnlyonceError } from '../errors.ts'
import { type Explanation, explain } from '../explain.ts'
import { engineOf } from '../onlyonce.ts'
import type { RecordId, Reply } from '../record/index.ts'
import { positive } from '../requests.ts'
import type { Seen } from '../store/contract.ts'
import type { AuditEntry, DecisionStore, RecordSummary } from '../store/decisions.ts'
import {
  parkingStep,
  type Resolution,
  resolutionStep,
  type Signature,
  type Step,
  signatureOf,
  unparkingStep,
} from './decide.ts'
import { cursorOf, type ListOptions, listRequestOf, type Page } from './list.ts'

export type { AuditEntry, RecordSummary } from '../store/decisions.ts'
export type { Resolution, Signature } from './decide.ts'
export type { ListOptions, Page } from './list.ts'
export type { GivenReply } from './reply.ts'

type Id = Pick<ProtectedCall, 'account' | 'operation' | 'key'>

/** The whole story of one key. */
export interface Shown extends Explanation {
  /** Null where there is none, or none any more. */
  readonly record: RecordSummary | null
  /** What operators have decided, the oldest first; also about a record that was removed since. */
  readonly audit: readonly AuditEntry[]
  /** Only if it was asked for. */
  readonly reply: Reply | null
}

export interface Operator {
  /**
   * Unfinished records of all accounts, the oldest attempt first; by options others, page by page.
   *
   * @example
   * const { records, cursor } = await operator(once).list({ states: ['unknown', 'parked'], limit: 100 })
   */
  list(options?: ListOptions): Promise<Page>

  /**
   * One record, its attempts and the decisions about it; its reply only if it is asked for.
   *
   * @example
   * const { state, why, attempts, audit } = await operator(once).show({ account, operation, key })
   */
  show(id: Id, options?: { readonly reply?: boolean }): Promise<Shown>

  /**
   * Settles what is unknown or parked: with the reply that every retry then gets, or, where you have made sure that
   * nothing happened, by letting the same request run again.
   *
   * @example
   * await operator(once).resolve(id, { by: 'ann', why: 'found at the gateway, ch_42', reply: { status: 201, body } })
   * await operator(once).resolve(id, { by: 'ann', why: 'the gateway has no trace of it', allow_retry: true })
   */
  resolve(id: Id, resolution: Resolution): Promise<void>

  /** No more automatic attempts to find out what became of an unknown record. */
  park(id: Id, signature: Signature): Promise<void>

  /** Lets it be found out again. */
  unpark(id: Id, signature: Signature): Promise<void>
}

/**
 * For those who may see and decide about the records of all accounts. Who that is, is yours to check.
 *
 * @example
 * const { records } = await operator(once).list()
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

  async list(options: ListOptions = {}): Promise<Page> {
    const request = listRequestOf(options)
    await this.#engine.startToLook()
    // One more than is shown tells whether there is a next page.
    const found = await this.#store.list({ ...request, limit: request.limit + 1 })
    const shown = found.slice(0, request.limit)
    const last = found.length > request.limit ? shown.at(-1)! : null
    return {
      records: shown.map(({ record }) => record),
      cursor: last === null ? null : cursorOf(last.position),
    }
  }

  async show(id: Id, options: { readonly reply?: boolean } = {}): Promise<Shown> {
    const checked = this.#engine.requests.idToLookAt(id)
    await this.#engine.startToLook()
    const [told, record, audit, seen] = await Promise.all([
      explain(this.#engine.store, checked),
      this.#store.summary(checked),
      this.#store.audit(checked),
      options.reply === true ? this.#engine.store.look(checked) : null,
    ])
    return { ...told, record, audit, reply: seen?.record.state === 'completed' ? seen.record.reply : null }
  }

  async resolve(id: Id, resolution: Resolution): Promise<void> {
    const { reply, allow_retry } = resolution ?? {}
    if ((reply === undefined) === (allow_retry !== true)) {
      throw new OnlyonceError('option_invalid', { detail: 'Pass either reply or allow_retry: true.' })
    }
    const given_ms = resolution.retention_ms
    if (given_ms !== undefined) positive('retention_ms', given_ms)
    await this.#decide(id, resolution, async (checked, seen) => {
      const kept_ms = given_ms ?? (await this.#store.summary(checked))?.retention_ms
      return resolutionStep(seen, resolution, kept_ms ?? this.#engine.requests.retention_ms)
    })
  }

  async park(id: Id, signature: Signature): Promise<void> {
    await this.#decide(id, signature, (_, seen) => parkingStep(seen))
  }

  async unpark(id: Id, signature: Signature): Promise<void> {
    await this.#decide(id, signature, (_, seen) => unparkingStep(seen))
  }

  /** Looks, makes the next record of what was seen, and takes the step by what was seen: whoever is later is told. */
  async #decide(
    id: Id,
    signature: Signature,
    stepOf: (id: RecordId, seen: Seen | null) => Step | Promise<Step>,
  ): Promise<void> {
    const checked = this.#engine.requests.idToLookAt(id)
    const { by, why, fence } = signatureOf(signature ?? {})
    this.#engine.refuseWhenClosing()
    await this.#engine.start()
    const seen = await this.#engine.store.look(checked)
    if (fence !== undefined && seen !== null && seen.record.fence !== fence) {
      throw new OnlyonceError('record_changed')
    }
    const step = await stepOf(checked, seen)
    const done = await this.#store.decide({ id: checked, ...step, by, why })
    if (!done) throw new OnlyonceError('record_changed')
    const { state } = step.to
    if (state === 'completed' || state === 'retryable') {
      this.#engine.observers.emit({ signal: 'reconcile_resolved', id: checked, state })
    }
  }
}
