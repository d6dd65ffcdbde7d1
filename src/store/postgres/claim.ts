import { OnlyonceError } from '../../errors.ts'
import { LIMITS } from '../../limits.ts'
import { type Decision, decide } from '../../record/index.ts'
import type { ClaimRequest } from '../contract.ts'
import type { Connections } from './connections.ts'
import { bind } from './flush.ts'
import { readRecord } from './rows.ts'
import type { Statements } from './statements.ts'
import { identityValues, supersedeValues } from './values.ts'

/**
 * Claims a record in a commit of its own. The insert decides; where it gives no row, look with a new snapshot
 * and take the record over by its fence, which another may do first: then look again, a bounded number of
 * times.
 */
export async function claim(
  connections: Connections,
  statements: Statements,
  request: ClaimRequest,
): Promise<Decision> {
  const { id, claimant, lease_ms, takeover } = request
  const where = [id.account, id.operation, id.key] as const
  for (let look = 0; look < LIMITS.claim_looks_max; look += 1) {
    const insert = bind(statements.insertInProgress, ...identityValues(request), `${lease_ms}`)
    const inserted = (await connections.runBounded(insert)).rows.at(-1)![0]
    const row = inserted ?? (await connections.run(bind(statements.lookOne, ...where))).rows[0]![0]
    if (row === undefined) continue
    const { record, now } = readRecord(row)
    // Ours: inserted just now, or by an earlier try of the same attempt whose answer was lost.
    if (record.attempt_id === claimant.attempt_id && record.state === 'in_progress')
      return { kind: 'run', record }
    const same_request = record.state === 'expired' || request.matches(record.fingerprint)
    const decision = decide(record, { claimant, same_request, lease_ms, takeover }, now)
    if (decision.kind === 'run') {
      const values = supersedeValues(
        { id, claimant, previous: record, retention_ms: 0 },
        { state: 'in_progress', lease_ms },
      )
      const taken = await connections.runBounded(bind(statements.supersede, ...values))
      if (taken.rows.at(-1)!.length === 1) return decision
    } else if (decision.kind === 'vanished') {
      const { code, message } = decision.record.failure
      const { rows: marked } = await connections.run(
        bind(statements.doubtVanished, ...where, `${record.fence}`, code, message),
      )
      if (marked[0]!.length === 1) return decision
    } else return decision
  }
  throw new OnlyonceError('overloaded', {
    detail: 'The record changed hands too often while it was claimed.',
  })
}
