import { OnlyonceError } from '../core/errors.ts'
import type { Deadline } from '../core/retry.ts'
import type { Engine } from '../onlyonce/engine.ts'
import type { WorkEnd } from '../protect/handler.ts'
import type { Outcome, TransactionRequest } from '../protect/transaction.ts'
import { alreadyAnswered } from './invalid.ts'
import type { ResolvedPolicy } from './policy.ts'
import type { Prepared } from './prepare.ts'

/** The client wants nothing to begin any more. What was begun before is answered as ever: that starts nothing. */
export async function begunBefore<Tx>(
  engine: Engine<Tx>,
  request: TransactionRequest,
  policy: Pick<ResolvedPolicy, 'durable'>,
): Promise<Outcome> {
  const known = await alreadyAnswered(engine, request, policy)
  if (typeof known === 'string') throw new OnlyonceError('deadline_exceeded', { detail: NOT_BEGUN })
  return known
}

/**
 * The request with the time that its claim may take. A deadline bounds the start, the claim and the beginning of calls. What has begun
 * keeps the time that the route gives it: its reply is good for every retry, whether or not this client still waits for it.
 */
export function claimInTime({ request, deadline }: Prepared): TransactionRequest {
  if (deadline === null) return request
  return { ...request, deadlineMs: Math.max(1, Math.floor(Math.min(request.deadlineMs, deadline.leftMs))) }
}

/** The claim, or a connection, took longer than the client wants to wait for a start: the handler is not called. */
export function lateStart(deadline: Deadline | null): Extract<WorkEnd, { end: 'not_executed' }> | null {
  if (!deadline?.passed) return null
  return { end: 'not_executed', error: new OnlyonceError('deadline_exceeded', { detail: NOT_BEGUN }) }
}

const NOT_BEGUN = 'It passed before the request could begin.'
