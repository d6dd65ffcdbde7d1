/** Decisions of operators about requests, with all that follows from them for payments and the ledger. */
import {
  type GivenReply,
  type Onlyonce,
  OnlyonceError,
  type Operator,
  operator,
  type PostgresTx,
  type Queryable,
  type RecordId,
} from 'onlyonce'
import type pg from 'pg'
import { inTransaction } from '../database/in-transaction.ts'
import { problemReply, Refused } from '../problems.ts'
import { givenReply } from './giving-up.ts'
import { GATEWAY_ID_OWNERS } from './sql-unsettled.ts'
import { evidenceFor, releaseHeld, settleTold, type Told } from './told.ts'
import { settlingOf } from './workers.ts'

interface Signed {
  readonly by: string
  readonly why: string
  /** The fence that was seen: refused if it is another by now. */
  readonly fence?: number
}

export type Decision = Signed &
  (
    | { readonly decision: 'park' | 'unpark' }
    | {
        readonly decision: 'retry'
        /** The call that was in doubt was not carried out and never will be: the next one gets a new key. */
        readonly earlier_call_is_void?: true
      }
    | {
        /** It was found out at the processor that it happened, or that it did not. */
        readonly decision: 'executed' | 'not_executed'
        /** What it is called there. */
        readonly gateway_id?: string
        /** Until when it is held there. */
        readonly capture_before?: string
        /** In place of the reply that the request would have had. */
        readonly reply?: GivenReply
      }
  )

/**
 * Decides about a request that no program can finish. What it holds is settled or let go of, and what happened is posted, in the
 * commit of the decision. A request that was proved not to have been executed is given up by `not_executed`.
 *
 * @example
 * await decide(service, record, { decision: 'executed', gateway_id: 're_1', by: 'ann', why: 'found there' })
 */
export async function decide(
  { once, pool }: { readonly once: Onlyonce<PostgresTx>; readonly pool: pg.Pool },
  record: RecordId,
  given: Decision,
): Promise<void> {
  const desk = operator(once)
  const { by, why, fence } = given
  const signed = { by, why, ...(fence !== undefined && { fence }) }
  switch (given.decision) {
    case 'park':
      return await desk.park(record, signed)
    case 'unpark':
      return await desk.unpark(record, signed)
    case 'retry':
      return await desk.resolve(record, {
        ...signed,
        allow_retry: true,
        ...(given.earlier_call_is_void && { earlier_call_is_void: true }),
      })
    default: {
      const told = toldBy(record, given)
      await refuseEnded(desk, record)
      const settling = settlingOf(once)(record.account)
      const settled = inTransaction(pool, async (tx) => {
        if (!told.executed) {
          const reply = given.reply ?? givenReply(problemReply('request_given_up'))
          const { given_up } = await desk.giveUp(record, { ...signed, reply, tx })
          if (given_up) return await releaseHeld(tx, settling, record)
        }
        const reply = await replyOf(tx, settling, record, told, given.reply)
        await desk.resolve(record, { ...signed, reply, tx })
      })
      return await settled.catch(refuseTaken)
    }
  }
}

/** The index decides, so two decisions at once cannot both have the id. */
function refuseTaken(error: unknown): never {
  const { code, constraint } = error as { readonly code?: unknown; readonly constraint?: unknown }
  const taken = code === '23505' && ['payments_gateway_id', 'refunds_gateway_id'].includes(`${constraint}`)
  throw taken ? gatewayIdTaken() : error
}

function gatewayIdTaken(): Refused {
  const detail = 'gateway_id belongs to another payment or refund already. Nothing was decided.'
  return new Refused('invalid_request', { field: 'gateway_id', detail })
}

/** What has ended holds nothing, so nothing could be told about what became of it. */
async function refuseEnded(desk: Operator, record: RecordId): Promise<void> {
  const { state, why } = await desk.show(record)
  if (['none', 'expired', 'completed'].includes(state))
    throw new OnlyonceError('not_resolvable', { detail: why })
}

/** Settles what the request holds. The reply is that of the request, where the operator gives no other. */
async function replyOf(
  tx: Queryable,
  settling: ReturnType<ReturnType<typeof settlingOf>>,
  record: RecordId,
  told: Told,
  given: GivenReply | undefined,
): Promise<GivenReply> {
  const settled = await settleTold(tx, settling, record, told)
  if (given !== undefined) return given
  if (settled !== null) return givenReply(settled)
  throw new Refused('invalid_request', {
    field: 'reply',
    detail: 'Nothing is held for this request from which its reply could be made: give the reply.',
  })
}

/** Without its name at the processor, our books could never be compared with the processor's. */
const NAMED: readonly string[] = ['payments.create', 'refunds.create']

function toldBy(record: RecordId, given: Extract<Decision, { readonly gateway_id?: string }>): Told {
  return given.decision === 'not_executed' ? { executed: false } : foundBy(record, given)
}

function foundBy(
  { operation }: RecordId,
  { gateway_id, capture_before }: Pick<FoundAtProcessor, 'gateway_id' | 'capture_before'>,
) {
  if (gateway_id === undefined && NAMED.includes(operation)) {
    throw new Refused('invalid_request', { field: 'gateway_id', detail: 'gateway_id is missing.' })
  }
  return { executed: true, gateway_id: gateway_id ?? null, capture_before: capture_before ?? null } as const
}

export interface FoundAtProcessor {
  readonly outcome: 'executed' | 'declined'
  readonly gateway_id?: string
  readonly capture_before?: string
  readonly message?: string
}

/** What was found, as the result of the call that it is about, and the step that makes that call. Null: there is no such call. */
export async function evidenceOf(
  { pool }: { readonly pool: pg.Pool },
  record: RecordId,
  found: FoundAtProcessor,
) {
  const told = found.outcome === 'executed' ? foundBy(record, found) : { declined: found.message ?? null }
  // Only a look: a worker settles it later, and there the index decides.
  if (found.gateway_id !== undefined && NAMED.includes(record.operation)) {
    const { rows } = await pool.query(GATEWAY_ID_OWNERS, [record.account, found.gateway_id])
    if (rows.some(({ operation }) => operation === record.operation)) throw gatewayIdTaken()
  }
  return await evidenceFor(pool, record, told)
}
