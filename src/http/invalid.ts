import { OnlyonceError } from '../core/errors.ts'
import { invalidAnswerOf } from '../core/invalid.ts'
import type { Engine } from '../onlyonce/engine.ts'
import { type Outcome, outcomeOf, type TransactionRequest } from '../protect/transaction.ts'
import { decide, isFree, type Kind } from '../record/index.ts'
import type { ResolvedPolicy } from './policy.ts'
import { problemReply } from './problem.ts'
import type { HttpReply } from './reply.ts'
import type { BodyIssue } from './validate.ts'

/** What is sent where work has called its request invalid: never stored. Null for all other errors. */
export function invalidReply(error: unknown, policy: ResolvedPolicy): HttpReply | null {
  const answer = invalidAnswerOf(error)
  if (answer === null) return null
  const { status = 400, body, issues } = answer
  if (body === undefined)
    return problemReply(error as OnlyonceError, policy, { status, ...(issues !== undefined && { issues }) })
  const headers = [
    ['content-type', 'application/json'],
    ['cache-control', 'no-store'],
  ] as const
  return { status, headers, body: Buffer.from(JSON.stringify(body)) }
}

/** What is sent where the schema of the route refuses the body. */
export function refusedBody(
  issues: readonly BodyIssue[],
  kept: 'free' | 'kept',
  policy: ResolvedPolicy,
): HttpReply {
  const error = new OnlyonceError(kept === 'free' ? 'request_invalid' : 'request_invalid_kept')
  return problemReply(error, policy, { issues })
}

/**
 * What is known of a key whose request is not valid. A schema may have changed since the request was done: its retry is still given
 * the reply. Reads alone, so that nothing can run by it. `free` where any request with this key would run; `kept`
 * where only one with the same content would.
 */
export async function alreadyAnswered<Tx>(
  engine: Pick<Engine<Tx>, 'wouldRun' | 'store'>,
  request: TransactionRequest,
  { durable }: Pick<ResolvedPolicy, 'durable'>,
): Promise<Outcome | 'free' | 'kept'> {
  await engine.wouldRun(request)
  const seen = await engine.store.look(request.id)
  if (seen === null || isFree(seen.record)) return 'free'
  const { fingerprint, owner, trace } = request
  const kind: Kind = durable === null ? 'transaction' : 'operation'
  const claimant = { kind, attemptId: '', owner, fingerprint, trace }
  const sameRequest = request.matches(seen.record.fingerprint)
  const claim = { claimant, sameRequest, leaseMs: 0, takeover: 'doubt' } as const
  const decision = decide(seen.record, claim, seen.now)
  return decision.kind === 'run' ? 'kept' : outcomeOf(decision)
}
