import { randomUUID } from 'node:crypto'
import { failureOf } from '../failure.ts'
import { LIMITS } from '../limits.ts'
import type { CallSignals } from '../observe/index.ts'
import { type Claimant, decide, type Failure, lookedAtIn, type Reply } from '../record/index.ts'
import { Deadline } from '../retry.ts'
import type { Resumed, Takable } from '../store/operations.ts'
import type { HandlerRequest } from './handler.ts'
import { refuseNewWork } from './lapsed.ts'
import { isNotNow } from './not-now.ts'
import type { Operation } from './operation.ts'
import type { OperationAttempt, OperationHouse } from './operation-attempt.ts'
import { Hold } from './operation-hold.ts'
import { OperationRun } from './operation-run.ts'
import { type RunEnd, stopOf } from './operation-stop.ts'
import { Steps } from './steps.ts'
import { busyFor, type Outcome, outcomeOf } from './transaction.ts'

/** An operation with everything that decides about it. */
export interface OperationRequest extends Omit<HandlerRequest, 'rerunnable' | 'save_wait_ms'> {
  /** As JSON; the function is given what it says. */
  readonly input: Buffer
  /** Until when whoever finishes it in the background may still begin calls; null where the caller gave none. */
  readonly deadline_given_ms: number | null
  /** Whether a reply with this status lets the same request run again, where nothing was done outside. */
  readonly notNow: (status: number) => boolean
}

/** The versions of an operation that a process has the code of. */
export type VersionsOf = (name: string) => ReadonlyMap<string, Operation<unknown, unknown>>

type AnyOperation = Operation<unknown, unknown>

/**
 * Runs an operation, or goes on with what another attempt has left, from its last durable step. A new key is looked
 * up first; its record becomes durable with the first step, and a conflict there means that another came first.
 */
export async function runOperation<Tx>(
  house: OperationHouse<Tx>,
  request: OperationRequest,
  operation: AnyOperation,
  versionsOf: VersionsOf,
  signals: CallSignals,
): Promise<Outcome> {
  const { id, owner, fingerprint, trace, lease_ms } = request
  const deadline = new Deadline(request.deadline_ms)
  const code = versionsOf(id.operation)
  for (let tries = 0; tries < LIMITS.attempts_max; tries += 1) {
    if (tries > 0 && !(await deadline.backOff(tries))) break
    const claimant: Claimant = { attempt_id: randomUUID(), owner, fingerprint, trace }
    house.crashPoint('operation.look.before')
    const seen = await house.store.look(id)
    house.crashPoint('operation.look.after')
    const record = seen?.record ?? null
    refuseNewWork(request.lapsed, record?.state ?? 'none')
    const same_request = record === null || record.state === 'expired' || request.matches(record.fingerprint)
    const claim = { claimant, same_request, lease_ms, takeover: 'resume' } as const
    const decision = decide(record, claim, seen?.now ?? 0)
    signals.decided(decision)
    if (decision.kind !== 'run') return outcomeOf(decision)
    const head = {
      version: operation.version,
      input: { bytes: request.input, sealed_by: null },
      deadline_ms: request.deadline_given_ms,
      retention_ms: request.retention_ms,
    }
    const lease = new Deadline(lease_ms)
    let resumed: Resumed | null = null
    if (record !== null) {
      house.crashPoint('operation.take_over.before')
      const taken = { id, fence: record.fence, state: record.state }
      resumed = await house.operations.takeOver({
        seen: taken,
        claimant,
        lease_ms,
        head,
        versions: [...code.keys()],
      })
      house.crashPoint('operation.take_over.after')
      if (resumed === null) continue
    }
    const attempt: OperationAttempt = {
      ...attemptOf(request, claimant, resumed),
      deadline,
      calls_until: deadline,
      head: headOf(head, resumed),
      resumed,
      from: record?.state ?? 'none',
    }
    const end = await runAttempt(house, attempt, lease, code, request.notNow, signals)
    if (end.why === 'conflict') continue
    return outcomeOfEnd(end, attempt)
  }
  return busyFor(deadline)
}

/** What a worker knows of an operation that it goes on with. */
export interface ResumeRequest extends Pick<HandlerRequest, 'owner' | 'lease_ms' | 'in_progress_max_ms'> {
  readonly seen: Takable
  /** Looks count towards the schedule only where somebody was sent to look. */
  readonly looking: boolean
}

/** How it went: null when another came first. */
export type ResumeEnd = RunEnd | null

/** Goes on with an operation whose caller is gone. */
export async function resumeOperation<Tx>(
  house: OperationHouse<Tx>,
  request: ResumeRequest,
  versionsOf: VersionsOf,
  signals: CallSignals,
): Promise<ResumeEnd> {
  const { seen, owner, lease_ms, in_progress_max_ms } = request
  const { id } = seen
  const code = versionsOf(id.operation)
  const unsigned = { attempt_id: randomUUID(), owner, trace: signals.trace }
  const lease = new Deadline(lease_ms)
  house.crashPoint('operation.take_over.before')
  const resumed = await house.operations.takeOver({
    seen,
    claimant: unsigned,
    lease_ms,
    head: null,
    versions: [...code.keys()],
  })
  house.crashPoint('operation.take_over.after')
  if (resumed === null) return null
  const claimant: Claimant = { ...unsigned, fingerprint: resumed.record.fingerprint }
  const calls_ms = Math.max(0, Math.min(resumed.deadline_in_ms ?? in_progress_max_ms, in_progress_max_ms))
  const attempt: OperationAttempt = {
    id,
    claimant,
    lease_ms,
    in_progress_max_ms,
    deadline: new Deadline(in_progress_max_ms),
    calls_until: new Deadline(calls_ms),
    head: headOf({ version: '', input: resumed.input, deadline_ms: null, retention_ms: 0 }, resumed),
    resumed: request.looking ? { ...resumed, looks: resumed.looks + 1 } : resumed,
    from: seen.state,
  }
  return await runAttempt(house, attempt, lease, code, isNotNow, signals)
}

/** Runs one attempt, and writes down how it ended. */
async function runAttempt<Tx>(
  house: OperationHouse<Tx>,
  attempt: OperationAttempt,
  lease: Deadline,
  code: ReadonlyMap<string, AnyOperation>,
  notNow: (status: number) => boolean,
  signals: CallSignals,
): Promise<RunEnd> {
  const hold = new Hold(house, attempt, lease)
  try {
    hold.begin()
    // Those who left it retryable have ended well.
    if (attempt.from === 'in_progress' && (attempt.resumed?.record.fence ?? 0) > LIMITS.owners_max) {
      await hold.park(WORN_OUT)
      return { why: 'parked', failure: WORN_OUT }
    }
    const steps = Steps.read(attempt.resumed?.progress?.bytes ?? null)
    const run = new OperationRun(hold, steps, notNow)
    // What nobody here has the code of was not taken.
    const end = await run.run(code.get(attempt.head.version)!, inputOf(attempt.head.input.bytes))
    return await conclude(hold, steps, end, run.unproved, signals)
  } catch (error) {
    const stop = stopOf(error)
    await hold.handOver()
    return stop
  } finally {
    hold.end()
  }
}

/** Whatever it is that ends its owners, it will end the next one too. */
const WORN_OUT: Failure = {
  code: 'owners_exhausted',
  message: 'Too many owners have taken it over, and none has finished it.',
}

/** Leaves the record as the attempt ended. What cannot be written now shows when the lease is over. */
async function conclude<Tx>(
  hold: Hold<Tx>,
  steps: Steps,
  end: RunEnd,
  unproved: boolean,
  signals: CallSignals,
): Promise<RunEnd> {
  switch (end.why) {
    case 'completed':
    case 'conflict':
    case 'busy':
      return end
    case 'lost':
      return end
    case 'doubt':
      await keep(hold, steps)
      return await doubt(hold, end.failure, end.waits_for, signals)
    case 'parked':
      await keep(hold, steps)
      await hold.park(end.failure)
      return end
    case 'failed':
    case 'not_now':
      await keep(hold, steps)
      await leave(hold, steps, failureOfEnd(end), unproved, signals)
      return end
    default:
      return end satisfies never
  }
}

/** What calls have brought must not be lost with whatever was to use it: nobody may be able to ask for it again. */
async function keep<Tx>(hold: Hold<Tx>, steps: Steps): Promise<void> {
  if (!steps.pending) return
  await hold.write({ state: 'in_progress', points: steps.points() })
  steps.committed()
}

function failureOfEnd(end: Extract<RunEnd, { why: 'failed' | 'not_now' }>): Failure {
  if (end.why === 'failed') return failureOf(end.error)
  return { code: `http_${end.reply.status}`, message: 'The operation answered so.' }
}

/**
 * Whoever comes next goes on. What was done outside waits for nobody's retry: the record is in doubt then, so that it
 * is looked at, and so it is where a call that was sent, or an undo, waits to be brought to its end; otherwise it is
 * proved that nothing happened.
 */
async function leave<Tx>(
  hold: Hold<Tx>,
  steps: Steps,
  failure: Failure,
  unproved: boolean,
  signals: CallSignals,
): Promise<void> {
  if (hold.owned === null) return await hold.leaveRetryable(failure)
  if (steps.foreign || steps.undoing !== null || unproved) await doubt(hold, failure, null, signals)
  else await hold.release(failure)
}

async function doubt<Tx>(
  hold: Hold<Tx>,
  failure: Failure,
  waits_for: string | null,
  signals: CallSignals,
): Promise<RunEnd> {
  const look_in_ms = await hold.doubt(failure, waits_for)
  if (look_in_ms === null) return { why: 'parked', failure }
  signals.doubted(failure)
  return { why: 'doubt', failure, waits_for, look_in_ms }
}

function outcomeOfEnd(end: RunEnd, { claimant, resumed, deadline }: OperationAttempt): Outcome {
  const origin = { fence: resumed?.record.fence ?? 1, trace: claimant.trace }
  switch (end.why) {
    case 'completed':
    case 'not_now':
      return { outcome: 'executed', reply: end.reply as Reply }
    case 'busy':
    case 'conflict':
      return busyFor(deadline)
    case 'doubt':
      return {
        outcome: 'unknown',
        failure: end.failure,
        retry_after_ms: lookedAtIn(end.look_in_ms ?? 0),
        origin,
      }
    case 'parked':
      return { outcome: 'parked', failure: end.failure, origin }
    case 'lost':
    case 'failed':
      throw end.error
    default:
      return end satisfies never
  }
}

function attemptOf(
  { id, lease_ms, in_progress_max_ms }: OperationRequest,
  claimant: Claimant,
  resumed: Resumed | null,
): Pick<OperationAttempt, 'id' | 'claimant' | 'lease_ms' | 'in_progress_max_ms'> {
  const { fingerprint } = resumed?.record ?? claimant
  return { id, claimant: { ...claimant, fingerprint }, lease_ms, in_progress_max_ms }
}

/** What an earlier attempt has written down is what counts. */
function headOf(head: OperationAttempt['head'], resumed: Resumed | null): OperationAttempt['head'] {
  if (resumed === null) return head
  const { version, input, retention_ms } = resumed
  return { ...head, version, input, retention_ms }
}

function inputOf(bytes: Buffer): unknown {
  return bytes.length === 0 ? undefined : JSON.parse(bytes.toString('utf8'))
}
