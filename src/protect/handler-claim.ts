/** How the handler's owner comes by its record, and gives it back. */
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { Claimant, Decision, Failure, Kind } from '../record/index.ts'
import type { ClaimRequest, Owned, Store } from '../store/contract.ts'
import { CLAIM_UNANSWERED } from './give-backs.ts'
import type { HandlerRequest } from './handler.ts'
import type { Running } from './running.ts'

/**
 * A claim whose answer was lost may have been made. It is asked again under the same attempt id, at least once, so
 * that our own claim is not taken for another's. A request that gets no answer in the end gives back what it may have.
 *
 * `fresh` runs out after a third of the lease, counted from before the claim was sent.
 */
export async function claim<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  claimant: Claimant,
  running: Running<Tx>,
  graceMs: number,
): Promise<{ readonly decision: Decision; readonly fresh: Deadline }> {
  const deadline = new Deadline(Math.min(request.deadlineMs, LIMITS.claimMaxMs))
  for (let tries = 0; ; tries += 1) {
    const fresh = new Deadline(request.leaseMs / 3)
    try {
      return { decision: await store.claim({ ...claimOf(request, claimant), graceMs }), fresh }
    } catch (error) {
      const unanswered = error instanceof OnlyonceError && error.code === 'store_unavailable'
      if (unanswered && (tries === 0 || (await deadline.backOff(tries)))) continue
      if (unanswered || tries > 0) giveBack(store, request, claimant, running)
      throw error
    }
  }
}

function claimOf(request: HandlerRequest, claimant: Claimant): ClaimRequest {
  const { id, matches, leaseMs, retentionMs, rerunnable } = request
  return { id, claimant, matches, leaseMs, retentionMs, takeover: rerunnable ? 'resume' : 'doubt' }
}

export function kindOf({ rerunnable }: HandlerRequest, recoverable: boolean): Kind {
  if (rerunnable) return 'handler_rerunnable'
  return recoverable ? 'handler_recoverable' : 'handler'
}

/** The answer was long on its way, and the lease has been running: work must not begin after its end. */
export async function confirm<Tx>(
  store: Store<Tx>,
  request: HandlerRequest,
  owned: Owned,
  running: Running<Tx>,
): Promise<void> {
  try {
    await store.extend(owned, request.leaseMs)
  } catch (error) {
    giveBack(store, request, owned, running)
    throw error
  }
}

/** The caller is told that this request started nothing: a claim of ours that stands all the same is given back. */
export function giveBack<Tx>(
  store: Store<Tx>,
  { id, retentionMs, leaseMs }: HandlerRequest,
  { attemptId }: { readonly attemptId: string },
  running: Running<Tx>,
  failure: Failure = CLAIM_UNANSWERED,
): void {
  running.giveBack(store, { id, attemptId, failure, retentionMs }, leaseMs)
}
