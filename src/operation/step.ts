import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import { inDoubt, isIdle, throwInDoubt, unproved } from '../protect/proof.ts'
import { failureOf } from '../record/failure.ts'
import type { Isolation, Owned, TransactionEnd } from '../store/contract.ts'
import type { Written } from '../store/operations.ts'
import type { Hold } from './hold.ts'
import { isOurs, type Stop, stopOf } from './stop.ts'

export type StepEnd =
  | { readonly end: 'committed'; readonly written: Written; readonly place?: string | undefined }
  | { readonly end: 'stop'; readonly stop: Stop }
  /** The function of the step threw; everything was rolled back. */
  | { readonly end: 'failed'; readonly error: unknown }

/** Runs an atomic step to its end. The first step of an operation claims its key, so it has to begin in time. */
export async function runStep<Tx>(
  hold: Hold<Tx>,
  isolation: Isolation,
  work: (tx: Tx) => Promise<Written>,
): Promise<StepEnd> {
  if (hold.owned === null && hold.attempt.beginsUntil.passed)
    return stopped(stopOf(new OnlyonceError('deadline_exceeded')))
  return await writeStep(hold, isolation, work)
}

/** Writes at any time what the function has come to. Collisions run it again in place. */
export async function writeStep<Tx>(
  hold: Hold<Tx>,
  isolation: Isolation,
  work: (tx: Tx) => Promise<Written>,
): Promise<StepEnd> {
  const { leaseMs, deadline } = hold.attempt
  let lease = new Deadline(leaseMs)
  const timed = async (tx: Tx) => {
    const written = await work(tx)
    // The lease is counted from the last statement of the step, which comes now.
    lease = new Deadline(leaseMs)
    return written
  }
  let last: unknown
  for (let tries = 0; tries < LIMITS.attemptsMax; tries += 1) {
    if (tries > 0 && !(await deadline.backOff(tries))) break
    const end = await hold.quietly((onLock) => transact(hold, isolation, timed, onLock))
    const step = await stepEndOf(hold, end)
    if (step.end === 'committed') hold.committed(step.written, lease, step.place)
    if (step.end !== 'rerun') return step
    hold.misplaced()
    last = step.error
  }
  const error =
    last instanceof OnlyonceError ? last : new OnlyonceError('serialization_failed', { cause: last })
  return stopped({ why: 'failed', error })
}

async function stepEndOf<Tx>(
  hold: Hold<Tx>,
  end: TransactionEnd<Written>,
): Promise<StepEnd | { readonly end: 'rerun'; readonly error: unknown }> {
  switch (end.end) {
    case 'committed':
      return { end: 'committed', written: end.reply, place: end.place }
    case 'in_doubt': {
      const verdict = await settle(hold, end.reply)
      if (verdict === 'committed') return { end: 'committed', written: end.reply }
      if (verdict !== 'rolled_back') return stopped(verdict)
      // Where there was no record, one stands there now that says so.
      if (hold.owned === null) return stopped({ why: 'conflict' })
      return isIdle(end.error) ? stopped(stopOf(end.error)) : { end: 'rerun', error: end.error }
    }
    case 'conflict':
      return stopped({ why: 'conflict' })
    case 'busy':
      // With the record in our hands, it is a row of the user's that others hold.
      return hold.owned === null ? stopped({ why: 'busy' }) : { end: 'rerun', error: undefined }
    case 'rerun':
      return end
    case 'ended_inside':
      return stopped(await endedInside(hold, end.error))
    case 'failed':
      if (isOurs(end.error)) return stopped(stopOf(end.error))
      return end.meant === false ? stopped({ why: 'failed', error: unproved(end.error, 'not_applied') }) : end
    default:
      return end satisfies never
  }
}

function transact<Tx>(
  hold: Hold<Tx>,
  isolation: Isolation,
  work: (tx: Tx) => Promise<Written>,
  onLock: () => Owned['place'],
): Promise<TransactionEnd<Written>> {
  const { operations, crashPoint } = hold.house
  const bounds = { isolation, timeMaxMs: Math.max(1, hold.attempt.deadline.leftMs) }
  const { owned } = hold
  const end =
    owned === null
      ? operations.begin(hold.beginning, bounds, work, crashPoint)
      : operations.step(owned, { ...bounds, ...hold.bounds, onLock }, work, crashPoint)
  // A store tells ends; one that throws has told none.
  return end.catch(throwInDoubt)
}

async function settle<Tx>(hold: Hold<Tx>, written: Written): Promise<'committed' | 'rolled_back' | Stop> {
  const { store, operations, crashPoint } = hold.house
  try {
    crashPoint('operation.settle.before')
    const verdict =
      hold.owned === null
        ? await store.settle(hold.asTransaction())
        : await operations.settleStep(hold.owned, written)
    crashPoint('operation.settle.after')
    return verdict
  } catch (error) {
    return stopOf(inDoubt(error))
  }
}

/** The function of a step has ended its own transaction: what it did may stand without its record, so it must not run again. */
async function endedInside<Tx>(hold: Hold<Tx>, error: OnlyonceError): Promise<Stop> {
  try {
    await hold.claim()
    return { why: 'parked', failure: failureOf(error) }
  } catch {
    return { why: 'lost', error }
  }
}

function stopped(stop: Stop): { readonly end: 'stop'; readonly stop: Stop } {
  return { end: 'stop', stop }
}
