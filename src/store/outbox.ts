/**
 * What a store has to do so that events and jobs leave the database, and messages come in once. Optional: a store
 * without a database has none of it.
 */
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import type { OptionNames } from '../core/options.ts'
import { isWellFormed } from '../core/parts.ts'
import type { Failure } from '../record/index.ts'
import { encodeValue } from '../record/value.ts'
import type { Queryable } from './contract.ts'
import { newId } from './event-id.ts'

/** An event as it is given to publishers. */
export interface OutboxEvent {
  /** The same on every delivery: what the receiving side tells duplicates by. */
  readonly id: string
  readonly account: string
  readonly type: string
  /** What it happened to; events of one aggregate are delivered in order. Null: in any order. */
  readonly aggregate: string | null
  /** Its number within the aggregate, from 1 and without a gap. */
  readonly sequence: number | null
  readonly payload: unknown
  /** Milliseconds since the epoch, by the database's clock. */
  readonly emittedAt: number
}

/** An event on its way in, checked and serialized. */
export interface EventDraft {
  readonly id: string
  readonly type: string
  readonly aggregate: string | null
  readonly payload: string
}

/** A job on its way in, checked and serialized. */
export interface JobDraft {
  readonly id: string
  readonly job: string
  readonly key: string | null
  readonly payload: string
  readonly runAfterMs: number
}

/** How far a destination has come in a lane. */
export interface LanePlace {
  readonly lane: number
  readonly batch: number
  readonly place: number
}

/** Something to deliver: the next of a lane, or one that was held and is due. */
export type TakenEvent = {
  readonly at: LanePlace
  /** Null: it was deleted. */
  readonly event: OutboxEvent | null
} & (
  | { readonly from: 'lane' /** An earlier one of its aggregate is held. */; readonly blocked: boolean }
  | { readonly from: 'held'; readonly tries: number; readonly refusals: number }
)

export interface Taken {
  readonly claimId: string
  /** What was taken, and where its cursors stand. */
  readonly lanes: readonly LanePlace[]
  readonly events: readonly TakenEvent[]
}

/** An event that its destination's cursor passes without having delivered it. */
export interface HeldEvent {
  readonly at: LanePlace
  readonly event: OutboxEvent
  readonly tries: number
  readonly refusals: number
  /** When it is tried next; `behind`: not before the one in front of it; `parked`: never. */
  readonly next: { readonly waitMs: number } | 'behind' | 'parked'
  readonly failure: Failure | null
}

/** What a relay has to say at the end of a round. */
export interface RoundEnd {
  readonly destination: string
  readonly claimId: string
  readonly lanes: readonly LanePlace[]
  /** Newly held. */
  readonly hold: readonly HeldEvent[]
  /** Held before, and failed once more. */
  readonly again: readonly HeldEvent[]
  /** Held before, and delivered. */
  readonly released: readonly TakenEvent[]
}

export interface Lag {
  readonly destination: string
  readonly count: number
  /** Of the oldest event that is not delivered; 0 when there is none. */
  readonly oldestAgeMs: number
  readonly parked: number
}

export interface ListedParked {
  readonly parked: Parked
  /** When, in microseconds since the epoch. */
  readonly atUs: string
}

/** `after`: only what stands behind this in the list. */
export interface ParkedRequest {
  readonly limit: number
  readonly after: (Pick<Parked, 'id' | 'destination'> & Pick<ListedParked, 'atUs'>) | null
}

/** An event or a job that is not tried any more, and why. */
export interface Parked {
  readonly account: string
  readonly id: string
  /** Of an event: where it was refused. */
  readonly destination: string | null
  /** The event's type, or the job's name. */
  readonly name: string
  readonly failure: Failure
}

export interface TakenJob {
  readonly account: string
  readonly id: string
  readonly job: string
  readonly key: string | null
  readonly payload: unknown
  /** This one included. */
  readonly attempts: number
  readonly stagedAt: number
}

export type JobEnd = {
  readonly account: string
  readonly id: string
} /** `keyed`: it has a key, which is to be known for a while. */ & (
  | { readonly end: 'done'; readonly keyed: boolean }
  | { readonly end: 'again'; readonly waitMs: number; readonly failure: Failure }
  | { readonly end: 'parked'; readonly failure: Failure }
)

export interface Message {
  readonly account: string
  readonly source: string
  readonly messageId: string
}

export interface OutboxStore {
  /** Writes events in the caller's transaction, in their order. One account: a transaction touches no other. */
  emit(tx: Queryable, account: string, events: readonly EventDraft[]): Promise<void>
  /** Writes jobs in the caller's transaction; answers the ids of those whose key was not there already. */
  stage(tx: Queryable, account: string, jobs: readonly JobDraft[]): Promise<readonly string[]>
  /**
   * Notes a message in the caller's transaction and does `work` there if it is new. When `work` throws, what it did
   * and the note are undone, and the transaction goes on.
   */
  inbox<T>(tx: Queryable, message: Message, work: () => Promise<T>): Promise<{ value: T } | null>

  /** Makes destinations known. One that is new gets what is not in a batch yet, and what comes later. */
  register(destinations: readonly string[]): Promise<void>
  /** Removes a destination, and what is held for it. */
  forget(destination: string): Promise<void>
  /** Puts new events into batches; says how many, and whether a lane has more of them. */
  route(): Promise<{ readonly count: number; readonly more: boolean }>
  /** Takes lanes that have something for this destination, and reads it. Null: there is nothing. */
  take(destination: string, eventsMax: number, leaseMs: number): Promise<Taken | null>
  /** Ends a round. Answers the lanes that were still the caller's; in others nothing was changed. */
  done(end: RoundEnd): Promise<readonly number[]>
  lag(): Promise<readonly Lag[]>

  takeJobs(jobs: readonly string[], countMax: number, leaseMs: number): Promise<TakenJobs>
  /** Ends jobs; a worker that has lost its lease changes nothing. */
  endJobs(claimId: string, ends: readonly JobEnd[]): Promise<void>

  /** What waits for an operator; the oldest first, a bounded number of them. */
  parked(request: ParkedRequest): Promise<readonly ListedParked[]>
  /** Tries something parked again, from the start; says whether there was any under this id. */
  retryParked(account: string, id: string): Promise<boolean>

  /** Deletes one bounded batch of what is delivered, done or seen for longer than this; says whether there is more. */
  clean(retention: { readonly deliveredMs: number; readonly inboxMs: number }): Promise<boolean>
}

export interface TakenJobs {
  readonly claimId: string
  readonly jobs: readonly TakenJob[]
}

/** An event as `op.emit` and `emit` are given it. */
export interface EventCall {
  readonly type: string
  readonly payload?: unknown
  readonly aggregate?: string | undefined
}

/** A job as `op.stage` and `stage` are given it. */
export interface JobCall {
  readonly job: string
  readonly payload?: unknown
  readonly runAfterMs?: number | undefined
  readonly key?: string | undefined
}

export const EVENT_NAMES: OptionNames<EventCall> = { type: true, payload: true, aggregate: true }
export const JOB_NAMES: OptionNames<JobCall> = { job: true, payload: true, runAfterMs: true, key: true }

export function draftEvent({ type, payload, aggregate }: EventCall): EventDraft {
  return {
    id: newId('evt'),
    type: checkName('type', type),
    aggregate: aggregate === undefined ? null : checkName('aggregate', aggregate),
    payload: serialize(payload),
  }
}

export function draftJob({ job, payload, runAfterMs = 0, key }: JobCall): JobDraft {
  if (!Number.isSafeInteger(runAfterMs) || runAfterMs < 0) {
    throw new OnlyonceError('option_invalid', { detail: 'runAfterMs is a whole number of milliseconds.' })
  }
  return {
    id: newId('job'),
    job: checkName('job', job),
    key: key === undefined ? null : checkName('key', key),
    payload: serialize(payload),
    runAfterMs,
  }
}

/** Names stand in index entries, and PostgreSQL's text holds no NUL. */
export function checkName(what: string, name: unknown): string {
  if (typeof name === 'string' && isWellFormed(name) && !name.includes('\0')) {
    if (name.trim() !== '' && name.length <= LIMITS.nameLengthMax) return name
  }
  throw new OnlyonceError('option_invalid', {
    detail: `${what} must be text of 1 to ${LIMITS.nameLengthMax} characters.`,
  })
}

function serialize(payload: unknown): string {
  return encodeValue(payload ?? null).body!.toString('utf8')
}
