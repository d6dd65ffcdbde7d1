/** The sentences in which the story of a key is told. */
import {
  ANY_OPERATION,
  type Failure,
  type Kind,
  mayHideEffects,
  type OnceRecord,
  type Parked,
  type RecordId,
  type Retryable,
  type Unknown,
} from '../record/index.ts'

export type SettledBy = 'operator' | 'recover'

/** What is known of a record beside itself. */
export interface Facts {
  readonly replyStatus: number | null
  /** How the attempt failed whose reply is stored; null where it did not, or where another has settled it. */
  readonly failure: Failure | null
  readonly settledBy: SettledBy | null
  /** An operator has ended it for good where it was retryable. */
  readonly givenUp: boolean
  /** An operator has erased it, and left a tombstone. */
  readonly erased: boolean
  /** The last step that is durable. */
  readonly recoveryPoint: string | null
  readonly inDoubt: InDoubt | null
}

/** A call of an operation whose outcome is not known. */
export interface InDoubt {
  /** The step that makes it; null where an earlier version of the library has left the record. */
  readonly step: string | null
  /** The key that the call was made with, or would have been: what the other side knows it by, and what evidence names. */
  readonly key: string
  /** How many earlier calls of the step operators have declared void; null with the step. */
  readonly generation: number | null
  /** When the doubt about it began, in milliseconds since the epoch; later looks do not change it. */
  readonly since: number
}

interface Told {
  readonly why: string
  readonly next: string
}

/** That nothing is known is no proof of anything, and is never told as one. */
export function describeNone({ operation }: RecordId, elsewhere: readonly string[]): Told {
  const near = elsewhere.length === 0 ? '' : ` This account has used the key for: ${elsewhere.join(', ')}.`
  return {
    why: `There is no record of this key for the operation ${operation}. That is no proof that nothing happened: the record may have been removed after its retention, the request may have been called invalid, or the operation may have another name.${near}`,
    next: elsewhere.includes(ANY_OPERATION)
      ? OF_ACCOUNT
      : 'A request with this key for this operation runs as a new one.',
  }
}

const OF_ACCOUNT = `Routes with scope: 'account' keep their records under the operation ${ANY_OPERATION}: look there what a request to such a route is answered. On any other route a request with this key runs as a new one.`

export function describe(record: OnceRecord, facts: Facts, now: number): Told {
  switch (record.state) {
    case 'in_progress':
      return record.leaseUntil > now
        ? {
            why: `${record.owner} works on it.`,
            next: 'Retries are told to wait until it ends or its lease runs out.',
          }
        : {
            why: `${record.owner} has not been heard of since its lease ran out, ${seconds(now - record.leaseUntil)} ago.`,
            next: AFTER_LEASE[record.kind],
          }
    case 'completed':
      if (facts.erased) {
        return {
          why: 'An operator erased it: what was asked, and what became of it, is not known here any more.',
          next: 'Requests with this key are told key_erased, and nothing runs under it again.',
        }
      }
      return {
        why: whyCompleted(record, facts),
        next: 'Retries get the stored reply until the record is removed.',
      }
    case 'retryable':
      return describeRetryable(record, facts)
    case 'unknown':
      return {
        why: `Whether ${whatOf(record, facts)} took effect is not known${since(facts, now)}: ${sentence(record.failure)}${behind(facts)}`,
        next: `Nothing runs until it is settled. ${lookOf(record, now)}`,
      }
    case 'parked':
      return {
        why: `${record.decided ? 'An operator parked it' : 'No more automatic attempts are made'}${about(facts, now)}: ${sentence(record.failure)}${behind(facts)}`,
        next: nextOfParked(record, facts),
      }
    case 'expired':
      return { why: 'Its retention has ended.', next: 'The next request with this key runs as a new one.' }
    default:
      return record satisfies never
  }
}

function whyCompleted(
  { fence, kind }: OnceRecord,
  { failure, givenUp, settledBy, replyStatus }: Facts,
): string {
  const status = `The stored reply has the status ${replyStatus}.`
  if (givenUp) return `An operator gave it up after attempt ${fence}, and gave the reply. ${status}`
  if (settledBy === 'operator') return `An operator settled it in the place of attempt ${fence}. ${status}`
  if (settledBy === 'recover') return `recover found the reply in the place of attempt ${fence}. ${status}`
  if (failure === null) return `Attempt ${fence} completed it. ${status}`
  const failed = `Attempt ${fence} failed: ${sentence(failure)} ${status}`
  return kind === 'operation'
    ? `${failed} Its steps were undone.`
    : `${failed} Whether it took effect before it failed is not known, so it is not run again. Look at the other side what became of it.`
}

function describeRetryable(record: Retryable, facts: Facts): Told {
  const { fence, failure } = record
  const again = 'The next request with this key and the same content runs again.'
  if (facts.settledBy === 'operator')
    return {
      why: `An operator decided after attempt ${fence} that the same request may run. Before that: ${sentence(failure)}${behind(facts)}`,
      next: facts.recoveryPoint === null ? again : GOES_ON,
    }
  if (facts.settledBy === 'recover')
    return {
      why: `recover said after attempt ${fence} that it did not take effect, and never will: ${sentence(failure)}`,
      next: again,
    }
  if (facts.recoveryPoint !== null)
    return {
      why: `Attempt ${fence} did not come to its end: ${sentence(failure)}${behind(facts)}`,
      next: GOES_ON,
    }
  if (mayHideEffects(record))
    return {
      why: `Attempt ${fence} failed. It, or an earlier one, may have had effects: ${sentence(failure)}`,
      next: again,
    }
  return { why: `Attempt ${fence} failed and had no effect: ${sentence(failure)}`, next: again }
}

const GOES_ON = 'The next request with this key and the same content goes on behind the last durable step.'

/** What an operation has done so far stands, however its last attempt ended. */
function behind({ recoveryPoint }: Facts): string {
  return recoveryPoint === null ? '' : ` Its steps up to ${recoveryPoint} are durable.`
}

/** What becomes of a record in progress whose lease is over. */
const AFTER_LEASE: Readonly<Record<Kind, string>> = {
  transaction: 'A worker or the next retry parks it for an operator, unless its owner answers first.',
  operation: 'A worker, or the next retry, goes on with it from its last durable step.',
  handler:
    'A worker or the next retry looks after it: it is parked for an operator where no recover can tell what became of it. Its owner may still answer.',
  handler_rerunnable: 'The next request with this key runs it again.',
  handler_recoverable:
    'A worker or the next retry asks recover what became of it. Its owner may still answer meanwhile.',
}

/** This process does not know whether a worker runs: what is told is when a look is due, and who makes it. */
function lookOf(record: Unknown, now: number): string {
  const { lookAt, kind, looks } = record
  if (kind === 'operation') {
    return lookAt === null
      ? `No look is planned. ${DECIDE}`
      : `The next look is due ${when(lookAt, now)}; a worker (startWorkers) makes it.`
  }
  const asked = looks > 0 ? ` recover was asked ${looks} times.` : ''
  return `The next look is due ${when(lookAt ?? now, now)}; a worker or a retry makes it: recover is asked, and without one the record is parked for an operator.${asked}`
}

function whatOf({ fence }: Unknown, { inDoubt }: Facts): string {
  return inDoubt === null ? `attempt ${fence}` : callOf(inDoubt)
}

/** Of a parked record: the call that an operator has to look up. */
function about({ inDoubt }: Facts, now: number): string {
  return inDoubt === null ? '' : ` about ${callOf(inDoubt)}, in doubt for ${seconds(now - inDoubt.since)}`
}

function since({ inDoubt }: Facts, now: number): string {
  return inDoubt === null ? '' : `, for ${seconds(now - inDoubt.since)} now`
}

function callOf({ step, generation }: InDoubt): string {
  if (step === null) return 'its call'
  return generation === 0 ? `the call of step ${step}` : `the call of step ${step}, generation ${generation},`
}

function nextOfParked({ kind, decided }: Parked, { inDoubt }: Facts): string {
  if (kind !== 'operation')
    return `${DECIDE}${decided ? '' : ' Until then the late reply of its owner still counts.'}`
  if (inDoubt === null) return `${DECIDE} unpark lets a worker go on with it.`
  return `An operator has to decide about the call with the key ${inDoubt.key}. If it happened, pass its result to addEvidence and unpark the record: the operation then goes on behind the call. If it did not happen and never will, resolve with allowRetry: true and earlierCallIsVoid: true.`
}

const DECIDE =
  'An operator has to decide: resolve with the reply if it happened, or with allowRetry: true if it is proved that it did not.'

function when(time: number, now: number): string {
  return time <= now ? 'now' : `in ${seconds(time - now)}`
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`
}

/** One that ends as a sentence does, because others follow it. */
function sentence({ code, message }: Failure): string {
  const text = message === '' ? code : `${code}: ${message}`
  return /[.!?]$/.test(text) ? text : `${text}.`
}
