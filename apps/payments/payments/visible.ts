/** Whether a processor can show by now all that a request may have asked of it. */
import { OnlyonceError, type RecordId } from 'onlyonce'
import type { Shown } from 'onlyonce/operator'
import type pg from 'pg'
import type { Gateway } from '../gateway/index.ts'
import { Refused } from '../problems.ts'
import { type Gateways, modeOf } from './gateways.ts'

/** The calls of a request of which no answer is stored. */
export interface Unanswered {
  /** Of the record. */
  readonly state: Shown['state']
  /** The last moment at which one may have been sent, by the database's clock; null where it is proved that none was carried out. */
  readonly sentUntil: number | null
}

/** A retryable record was proved not to have been executed, unless an operator has said so. */
export function unansweredOf({
  state,
  record,
  audit,
}: Pick<Shown, 'state' | 'record' | 'audit'>): Unanswered {
  const sentUntil = record?.sentUntil ?? null
  if (state !== 'retryable') return { state, sentUntil }
  const allowed = audit.findLast(({ to }) => to === 'retryable')
  return { state, sentUntil: allowed?.fence === record?.fence ? sentUntil : null }
}

/**
 * An operator says that a request was not carried out, and the processor does not show that it was. That is no proof before the processor has
 * had the time that its lookups may be behind: the client would be told that the request has failed, would pay again, and the charge would
 * show up later.
 */
export async function refuseTooEarly(
  { pool, gateways }: { readonly pool: Pick<pg.Pool, 'query'>; readonly gateways: Gateways },
  { account }: Pick<RecordId, 'account'>,
  { state, sentUntil }: Unanswered,
): Promise<void> {
  const gateway = gateways[modeOf(account)]
  if (sentUntil === null || gateway === undefined) return
  const { rows } = await pool.query(NOW)
  const decidableAt = sentUntil + gateway.visibleWithinMs
  const [{ now_ms: nowMs }] = rows as [{ now_ms: number }]
  if (state === 'in_progress' && sentUntil > nowMs)
    throw new OnlyonceError('not_resolvable', { detail: OWNED })
  const leftMs = decidableAt - nowMs
  if (leftMs > 0) throw tooEarly(gateway, state, sentUntil, leftMs)
}

const OWNED =
  'It is in progress, and its lease has not run out. Wait until its owner ends it, or until the lease is over.'

/** The clock that the record goes by. */
const NOW = `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now_ms`

function tooEarly(
  { name, visibleWithinMs }: Gateway,
  state: string,
  sentUntil: number,
  leftMs: number,
): Refused {
  const decidableAt = new Date(sentUntil + visibleWithinMs).toISOString()
  const behind =
    visibleWithinMs < 120_000 ? `${visibleWithinMs} ms` : `${Math.ceil(visibleWithinMs / 60_000)} minutes`
  const again =
    state === 'parked'
      ? ''
      : ' Park the record meanwhile: a worker or a client that tries again begins the time anew.'
  return new Refused('decision_too_early', {
    detail: `A call of this request may have been sent until ${new Date(sentUntil).toISOString()}, and ${name} may show what it did as late as ${behind} after that. Decide after ${decidableAt}.${again} Where you have a written statement of the processor that it has not carried out the request and never will, name it in processor_statement. Nothing was decided.`,
    more: { decidable_at: decidableAt, retryable: true },
    headers: { 'Retry-After': `${Math.max(1, Math.ceil(leftMs / 1_000))}` },
  })
}
