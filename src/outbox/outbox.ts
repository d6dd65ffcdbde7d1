import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { checkLimit, type Page, type PageOptions, pageOf, readCursor } from '../core/page.ts'
import { scopeOf } from '../key/index.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import type { Engine } from '../onlyonce/engine.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import type { OpenTransaction } from '../store/contract.ts'
import { isId } from '../store/event-id.ts'
import { keepOpen } from '../store/keep-open.ts'
import {
  checkName,
  draftEvent,
  draftJob,
  EVENT_NAMES,
  type EventCall,
  JOB_NAMES,
  type JobCall,
  type Lag,
  type OutboxStore,
  type Parked,
  type ParkedRequest,
} from '../store/outbox.ts'

/** Something that happened, to be told outside. */
export interface EmitCall extends EventCall {
  readonly account: string
}

/** Something to be done later. */
export interface StageCall extends JobCall {
  readonly account: string
}

const EMIT: OptionNames<EmitCall> = { ...EVENT_NAMES, account: true }
const STAGE: OptionNames<StageCall> = { ...JOB_NAMES, account: true }

/** `staged`: false when a job with this key is there already. */
export type Staged = { readonly staged: true; readonly id: string } | { readonly staged: false }

export interface Outbox {
  /**
   * Writes an event, or several of one account, in your transaction: they are delivered if it commits, and never
   * happened if it does not. Answers the ids under which they will be delivered. A pool, or a client before BEGIN, is refused with
   * `transaction_required`.
   *
   * @example
   * await emit(tx, { account, type: 'payment.captured', payload: { id }, aggregate: `payment:${id}` })
   */
  emit(tx: OpenTransaction, events: EmitCall | readonly EmitCall[]): Promise<readonly string[]>
  /**
   * Writes a job in your transaction. With a `key`, at most one such job of this account and name is there, done
   * ones included until they are removed.
   *
   * @example
   * await stage(tx, { account, job: 'send_receipt', payload: { id }, key: id })
   */
  stage(tx: OpenTransaction, job: StageCall): Promise<Staged>
  stage(tx: OpenTransaction, jobs: readonly StageCall[]): Promise<readonly Staged[]>
  /** How far every destination is behind. */
  lag(): Promise<readonly Lag[]>
  /**
   * The events and jobs that failed too often; the oldest first.
   *
   * @example
   * const { items, cursor } = await outbox(once).parked({ limit: 100 })
   */
  parked(options?: PageOptions): Promise<Page<Parked>>
  /** Tries something parked again. False: there is nothing parked under this id. */
  retryParked(parked: { readonly account: string; readonly id: string }): Promise<boolean>
  /** Removes a destination that no relay delivers to any more; until then what it did not get is kept. */
  forget(destination: string): Promise<void>
}

/**
 * What leaves the database through your own transactions.
 *
 * @example
 * const { emit, stage } = outbox(once)
 * await once.transaction(call, async (tx) => {
 *   await emit(tx, { account, type: 'payment.captured', payload: { id } })
 *   await stage(tx, { account, job: 'send_receipt', payload: { id } })
 *   return { id }
 * })
 */
export function outbox<Tx>(once: Onlyonce<Tx>): Outbox {
  const { store, ready } = outboxOf(once)
  async function stage(tx: OpenTransaction, job: StageCall): Promise<Staged>
  async function stage(tx: OpenTransaction, jobs: readonly StageCall[]): Promise<readonly Staged[]>
  async function stage(
    tx: OpenTransaction,
    given: StageCall | readonly StageCall[],
  ): Promise<Staged | readonly Staged[]> {
    const calls = ([] as readonly StageCall[]).concat(given)
    for (const call of calls) refuseUnknown('stage()', call, STAGE)
    const drafts = calls.map(draftJob)
    if (calls.length === 0) return []
    const account = oneAccount(calls)
    const written = await keepOpen(tx, async () => {
      await ready()
      return await store.stage(tx, account, drafts)
    })
    const ids = new Set(written)
    const staged = drafts.map(({ id }): Staged => (ids.has(id) ? { staged: true, id } : { staged: false }))
    return Array.isArray(given) ? staged : staged[0]!
  }
  return {
    async emit(tx, given) {
      const calls = ([] as readonly EmitCall[]).concat(given)
      for (const call of calls) refuseUnknown('emit()', call, EMIT)
      const drafts = calls.map(draftEvent)
      if (calls.length === 0) return []
      const account = oneAccount(calls)
      await keepOpen(tx, async () => {
        await ready()
        await store.emit(tx, account, drafts)
      })
      return drafts.map(({ id }) => id)
    },
    stage,
    lag: async () => {
      await ready()
      return await store.lag()
    },
    parked: async (options = {}) => {
      refuseUnknown('outbox.parked()', options, { limit: true, cursor: true })
      const limit = checkLimit(options.limit)
      const after = parkedAfter(options.cursor)
      await ready()
      const found = await store.parked({ limit: limit + 1, after })
      return pageOf(
        found,
        limit,
        ({ parked, atUs }) => [atUs, parked.id, parked.destination ?? ''],
        ({ parked }) => parked,
      )
    },
    retryParked: async ({ account, id }) => {
      await ready()
      if (!isId(id)) return false
      return await store.retryParked(account, id)
    },
    forget: async (destination) => {
      await ready()
      await store.forget(checkName('destination', destination))
    },
  }
}

/** The place that a cursor of parked events and jobs names. */
function parkedAfter(cursor: unknown): ParkedRequest['after'] {
  const isText = (part: unknown): part is string => typeof part === 'string' && !part.includes('\0')
  const isMicroseconds = (part: unknown): part is string => isText(part) && /^\d{1,17}$/.test(part)
  const parts = readCursor<[string, string, string]>(cursor, isMicroseconds, isId, isText)
  if (parts === null) return null
  const [atUs, id, destination] = parts
  return { atUs, id, destination: destination === '' ? null : destination }
}

/** The store's outbox behind a front door, and the engine's start, which is waited for once. */
export function outboxOf<Tx>(once: Onlyonce<Tx>): {
  engine: Engine<Tx>
  store: OutboxStore
  ready: () => Promise<void>
} {
  const engine = engineOf(once)
  const store = engine.store.outbox
  if (store === undefined) {
    throw new OnlyonceError('option_invalid', {
      detail: 'This store has no outbox, because it has no transactions of yours: use postgres().',
    })
  }
  let started = false
  const ready = async () => {
    engine.refuseWhenClosing()
    if (started) return
    await engine.start()
    started = true
  }
  return { engine, store, ready }
}

/** A transaction touches one account, so that it stays on one machine where accounts are spread over several. */
function oneAccount(calls: readonly { readonly account: string }[]): string {
  const { account } = scopeOf(calls[0]!.account, 'outbox')
  if (calls.every((call) => call.account === account)) return account
  throw new OnlyonceError('option_invalid', { detail: 'One call takes events or jobs of one account.' })
}
