import { randomUUID } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { CallSignals } from '../observe/index.ts'
import type { HandlerRequest } from '../protect/handler.ts'
import { refuseNewWork } from '../protect/lapsed.ts'
import { isNotNow } from '../protect/not-now.ts'
import { inDoubt } from '../protect/proof.ts'
import { busyFor, type Outcome, outcomeOf } from '../protect/transaction.ts'
import { type Claimant, decide, type Failure } from '../record/index.ts'
import type { Resumed, Takable } from '../store/operations.ts'
import { isReadOnly } from '../store/read-only.ts'
import type { OperationAttempt, OperationHouse } from './attempt.ts'
import { abandonedBy, conclude, outcomeOfEnd } from './conclude.ts'
import { Hold } from './hold.ts'
import type { Operation } from './operation.ts'
import { OperationRun } from './run.ts'
import { Steps } from './steps.ts'
import { isInterrupted, type RunEnd } from './stop.ts'

/** An operation with everything that decides about it. */
export interface OperationRequest extends Omit<HandlerRequest, 'rerunnable' | 'saveWaitMs'> {
  /** As JSON; the function is given what it says. */
  readonly input: Buffer
  /** Until when a worker that finishes it in the background may still begin calls; null where the caller gave none. */
  readonly deadlineGivenMs: number | null
  /** That the client of a route gave, which runs since the request was read; null where it gave none. */
  readonly clientDeadline: Deadline | null
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
  begin: () => void,
): Promise<Outcome> {
  const { id, owner, fingerprint, trace, leaseMs } = request
  const deadline = new Deadline(request.deadlineMs)
  const { clientDeadline: client } = request
  // A client's deadline is often shorter than the time for the attempt. What has begun by then is brought to its end.
  const beginsUntil = client !== null && client.leftMs < deadline.leftMs ? client : deadline
  const code = versionsOf(id.operation)
  for (let tries = 0; tries < LIMITS.attemptsMax; tries += 1) {
    if (tries > 0 && !(await beginsUntil.backOff(tries))) break
    const claimant: Claimant = { kind: 'operation', attemptId: randomUUID(), owner, fingerprint, trace }
    house.crashPoint('operation.look.before')
    const seen = await house.store.look(id).catch(throwOfStore)
    house.crashPoint('operation.look.after')
    const record = seen?.record ?? null
    refuseNewWork(request.lapsed, record?.state ?? 'none')
    const sameRequest = record === null || record.state === 'expired' || request.matches(record.fingerprint)
    const claim = { claimant, sameRequest, leaseMs, takeover: 'resume' } as const
    const decision = decide(record, claim, seen?.now ?? 0)
    signals.decided(decision)
    if (decision.kind !== 'run') return outcomeOf(decision)
    const head = {
      version: operation.version,
      input: { bytes: request.input, sealedBy: null },
      deadlineMs: client === null ? request.deadlineGivenMs : Math.ceil(client.leftMs),
      retentionMs: request.retentionMs,
    }
    const lease = new Deadline(leaseMs)
    let resumed: Resumed | null = null
    if (record !== null) {
      house.crashPoint('operation.take_over.before')
      const taken = { id, fence: record.fence, state: record.state }
      const request = { seen: taken, claimant, leaseMs, head, versions: [...code.keys()] }
      resumed = await house.operations.takeOver(request).catch(throwOfStore).catch(throwUnanswered)
      house.crashPoint('operation.take_over.after')
      if (resumed === null) continue
    }
    const attempt: OperationAttempt = {
      ...attemptOf(request, claimant, resumed),
      deadline,
      beginsUntil,
      head: headOf(head, resumed),
      resumed,
      from: record?.state ?? 'none',
      effectsPossible: resumed?.effectsPossible ?? false,
    }
    begin()
    const end = await runAttempt(house, attempt, lease, code, request.notNow, signals)
    if (end.why === 'conflict') continue
    return outcomeOfEnd(end, attempt)
  }
  return busyFor(deadline)
}

/** A take-over whose answer was lost may have been made, and then a worker goes on with the record: this request began it. */
function throwUnanswered(error: unknown): never {
  const unanswered = error instanceof OnlyonceError && error.code === 'store_unavailable'
  throw unanswered && !isReadOnly(error) ? inDoubt(error) : error
}

/** What a driver says of a statement of ours is nothing that the function of the operation has thrown, and its text is not for clients. */
function throwOfStore(error: unknown): never {
  throw error instanceof OnlyonceError ? error : new OnlyonceError('store_unavailable', { cause: error })
}

/** What a worker knows of an operation that it goes on with. */
export interface ResumeRequest extends Pick<HandlerRequest, 'owner' | 'leaseMs' | 'inProgressMaxMs'> {
  readonly seen: Takable
  /** Looks count towards the schedule only where a worker was sent to look. */
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
  const { seen, owner, leaseMs, inProgressMaxMs } = request
  const { id } = seen
  const code = versionsOf(id.operation)
  const unsigned = { kind: 'operation', attemptId: randomUUID(), owner, trace: signals.trace } as const
  const lease = new Deadline(leaseMs)
  house.crashPoint('operation.take_over.before')
  const resumed = await house.operations.takeOver({
    seen,
    claimant: unsigned,
    leaseMs,
    head: null,
    versions: [...code.keys()],
  })
  house.crashPoint('operation.take_over.after')
  if (resumed === null) return null
  const claimant: Claimant = { ...unsigned, fingerprint: resumed.record.fingerprint }
  const callsMs = Math.max(0, Math.min(resumed.deadlineInMs ?? inProgressMaxMs, inProgressMaxMs))
  const attempt: OperationAttempt = {
    id,
    claimant,
    leaseMs,
    inProgressMaxMs,
    deadline: new Deadline(inProgressMaxMs),
    beginsUntil: new Deadline(callsMs),
    head: headOf({ version: '', input: resumed.input, deadlineMs: null, retentionMs: 0 }, resumed),
    resumed: request.looking ? { ...resumed, looks: resumed.looks + 1 } : resumed,
    from: seen.state,
    effectsPossible: resumed.effectsPossible,
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
    if ((attempt.resumed?.vanished ?? 0) >= LIMITS.ownersMax) {
      await hold.park(WORN_OUT)
      return { why: 'parked', failure: WORN_OUT }
    }
    const read = readDurable(attempt)
    if (read === null) {
      await hold.park(UNREADABLE)
      return { why: 'parked', failure: UNREADABLE }
    }
    const { steps, input } = read
    const run = new OperationRun(hold, steps, notNow)
    // An operation whose code this process lacks was not taken.
    const end = await run.run(code.get(attempt.head.version)!, input)
    return await conclude(hold, steps, end, run.unproved, signals)
  } catch (error) {
    await hold.handOver()
    return abandonedBy(reasonOf(error))
  } finally {
    hold.end()
  }
}

/** What is durable of the operation; null where it cannot be read. No owner can go on with it then, so it is parked. */
function readDurable({ resumed, head }: OperationAttempt): { steps: Steps; input: unknown } | null {
  if (resumed?.unreadable === true) return null
  try {
    return { steps: Steps.read(resumed?.progress?.bytes ?? null), input: inputOf(head.input.bytes) }
  } catch {
    return null
  }
}

const UNREADABLE: Failure = {
  code: 'progress_unreadable',
  message:
    'The input or the durable steps in the record cannot be read: they were changed, or sealed with other bytes under the same key id.',
}

function reasonOf(error: unknown): unknown {
  return isInterrupted(error) && 'error' in error.stop ? error.stop.error : error
}

/** What has ended its owners will end the next one too. */
const WORN_OUT: Failure = {
  code: 'owners_exhausted',
  message: 'Too many owners have taken it over, and none has finished it.',
}

function attemptOf(
  { id, leaseMs, inProgressMaxMs }: OperationRequest,
  claimant: Claimant,
  resumed: Resumed | null,
): Pick<OperationAttempt, 'id' | 'claimant' | 'leaseMs' | 'inProgressMaxMs'> {
  const { fingerprint } = resumed?.record ?? claimant
  return { id, claimant: { ...claimant, fingerprint }, leaseMs, inProgressMaxMs }
}

/** What an earlier attempt has written down is what counts. */
function headOf(head: OperationAttempt['head'], resumed: Resumed | null): OperationAttempt['head'] {
  if (resumed === null) return head
  const { version, input, retentionMs } = resumed
  return { ...head, version, input, retentionMs }
}

function inputOf(bytes: Buffer): unknown {
  return bytes.length === 0 ? undefined : JSON.parse(bytes.toString('utf8'))
}
