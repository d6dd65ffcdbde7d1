/** Decisions of operators about requests, with all that follows from them for payments and the ledger. */
import { type Onlyonce, OnlyonceError, type Queryable, type RecordId } from 'onlyonce'
import { type GivenReply, type Operator, operator, type RecordSummary, type Shown } from 'onlyonce/operator'
import type { PostgresTx } from 'onlyonce/postgres'
import type pg from 'pg'
import { inTransaction } from '../database/in-transaction.ts'
import type { Decline } from '../gateway/index.ts'
import { problemReply, Refused } from '../problems.ts'
import { callKeysOf, isNamed, type Looking } from './calls.ts'
import { checkFound, type Named } from './found.ts'
import type { Gateways } from './gateways.ts'
import { givenReply } from './giving-up.ts'
import { checkNotDone } from './shown.ts'
import { isTaken, ownerOf } from './taken.ts'
import { callStepOf, evidenceFor, releaseHeld, settleTold, type Told } from './told.ts'
import { refuseTooEarly, unansweredOf } from './visible.ts'
import { settlingOf } from './workers.ts'

interface Doors {
  readonly pool: pg.Pool
  /** That what an operator names is looked up at. */
  readonly gateways: Gateways
}

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
        readonly processor_statement?: string
      }
    | ({
        /** It was found out at the processor that it happened, or that it did not. */
        readonly decision: 'executed' | 'not_executed'
        /** In place of the reply that the request would have had. */
        readonly reply?: GivenReply
      } & Named)
  )

/**
 * Decides about a request that no program can finish. What it holds is settled or let go of, and what happened is posted, in the
 * commit of the decision. A request that was proved not to have been executed is given up by `not_executed`.
 *
 * @example
 * await decide(service, record, { decision: 'executed', gateway_id: 're_1', by: 'ann', why: 'found there' })
 */
export async function decide(
  { once, pool, gateways }: Doors & { readonly once: Onlyonce<PostgresTx> },
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
      return await allowRetry({ desk, pool, gateways }, record, given)
    default: {
      // The decision is about what was seen here: where the record has gone on since, the operator is told.
      const shown = await desk.show(record)
      const decidable = await decidableRecord(desk, pool, record, shown, given)
      const seen = { ...signedAs(given), fence: decidable.fence }
      const looking = lookingFor({ pool, gateways }, shown, record, 'decision')
      const told = await toldBy(looking, record, given)
      const settling = settlingOf(once)(record.account)
      const settled = inTransaction(pool, async (tx) => {
        if (!told.executed) {
          const reply = given.reply ?? givenReply(problemReply('request_given_up'))
          const { givenUp } = await desk.giveUp(record, { ...seen, reply, tx })
          if (givenUp) return await releaseHeld(tx, settling, record)
        }
        const reply = await replyOf(tx, settling, record, told, given.reply)
        await desk.resolve(record, { ...seen, reply, tx })
      })
      return await settled.catch(async (error) => {
        // Another decision came first and has settled what was held: that is what the later operator hears.
        if (isLate(error) && (await hasChanged(desk, record, decidable)))
          throw new OnlyonceError('record_changed')
        if (!isTaken(error) || !told.executed) throw error
        throw gatewayIdTaken(await ownerOf(pool, record, told.gateway_id!))
      })
    }
  }
}

/** A void call gets another one in its place, under a new key, so the same time has to pass as before `not_executed`. */
async function allowRetry(
  { desk, ...doors }: Doors & { readonly desk: Operator },
  record: RecordId,
  given: Extract<Decision, { readonly decision: 'retry' }>,
): Promise<void> {
  const signed = { ...signedAs(given), ...(given.fence !== undefined && { fence: given.fence }) }
  if (!given.earlier_call_is_void) return await desk.resolve(record, { ...signed, allowRetry: true })
  const shown = await desk.show(record)
  if (given.processor_statement === undefined) await refuseTooEarly(doors, record, unansweredOf(shown))
  // About what was seen here: an attempt that came since may have sent the call again.
  const seen = { ...(shown.record !== null && { fence: shown.record.fence }), ...signed }
  await desk.resolve(record, { ...seen, allowRetry: true, earlierCallIsVoid: true })
}

/** What the operator says, once the processor has not said otherwise. */
async function toldBy(
  looking: Looking,
  record: RecordId,
  given: Named & Pick<Decision, 'decision'>,
): Promise<Told> {
  if (given.decision === 'executed') return await checkFound(looking, record, given)
  const stated = given.processor_statement !== undefined
  await checkNotDone(looking, record, { unchecked: given.unchecked === true, stated })
  return { executed: false }
}

/** What is compared with the processor. */
function lookingFor(doors: Doors, shown: Shown, record: RecordId, field: Looking['field']): Looking {
  const { record: seen } = shown
  return {
    ...doors,
    calls: seen === null ? [] : callKeysOf(record, seen),
    voidCalls: seen?.voidCalls ?? [],
    unanswered: unansweredOf(shown),
    field,
  }
}

/** Where another decision came first, nothing is held any more, or the record is over. */
function isLate(error: unknown): boolean {
  if (error instanceof NothingHeld) return true
  return error instanceof OnlyonceError && error.code === 'not_resolvable'
}

async function hasChanged(desk: Operator, record: RecordId, seen: RecordSummary): Promise<boolean> {
  const { record: now } = await desk.show(record)
  return now === null || now.state !== seen.state || now.fence !== seen.fence
}

function gatewayIdTaken(owner: Awaited<ReturnType<typeof ownerOf>>): Refused {
  const whose = owner === null ? '' : `, ${owner.owner} of ${owner.account}`
  const detail = `gateway_id belongs to another payment or refund already${whose}. Nothing was decided.`
  return new Refused('invalid_request', { field: 'gateway_id', detail })
}

/** Kept for ever, so that it can be seen which decisions rest on the word of an operator alone. */
function signedAs(given: Signed & Basis): Pick<Signed, 'by' | 'why'> {
  return { by: given.by, why: `${basisOf(given)}${given.why}` }
}

interface Basis {
  readonly unchecked?: true | undefined
  readonly processor_statement?: string | undefined
}

/** Stands before the reason of a decision that was not compared with the processor, or that rests on a statement of the processor. */
export function basisOf({ unchecked, processor_statement: statement }: Basis): string {
  const stated = statement === undefined ? '' : `Statement of the processor (${statement}): `
  return `${unchecked ? 'Unchecked: ' : ''}${stated}`
}

/**
 * A record that can be decided about. What has ended holds nothing, so nothing could be told about what became of it. What
 * the processor has answered durably cannot be declared not to have happened, unless its answer belongs to another payment or refund of ours.
 */
async function decidableRecord(
  desk: Operator,
  pool: pg.Pool,
  record: RecordId,
  { state, why, record: seen }: Shown,
  { decision, fence }: Pick<Decision, 'decision' | 'fence'>,
): Promise<RecordSummary> {
  // Who names a fence has seen the record when it could still be decided about.
  const changed = fence !== undefined && seen !== null && (seen.fence !== fence || state === 'completed')
  if (changed) throw new OnlyonceError('record_changed')
  if (seen === null || ['none', 'expired', 'completed'].includes(state))
    throw new OnlyonceError('not_resolvable', { detail: why })
  const { recoveryPoint } = seen
  if (
    decision === 'not_executed' &&
    recoveryPoint !== null &&
    recoveryPoint === callStepOf(record.operation) &&
    !(await isOfAnother(desk, pool, record, recoveryPoint))
  ) {
    const detail = `The step ${recoveryPoint} is durable: the processor has answered. Unpark it, and a worker goes on.`
    throw new OnlyonceError('not_resolvable', { detail })
  }
  return seen
}

/** Whether what the processor answered to a call is called as another payment or refund of ours is: then nothing can settle this one. */
async function isOfAnother(desk: Operator, pool: pg.Pool, record: RecordId, step: string): Promise<boolean> {
  const { results } = await desk.show(record, { results: true })
  const result = results?.steps.find(({ name }) => name === step)?.result as Partial<Decline> | undefined
  if (!isNamed(record.operation) || !result?.gateway_id) return false
  return (await ownerOf(pool, record, result.gateway_id)) !== null
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
  throw new NothingHeld()
}

class NothingHeld extends Refused {
  constructor() {
    const detail = 'Nothing is held for this request from which its reply could be made: give the reply.'
    super('invalid_request', { field: 'reply', detail })
  }
}

export interface FoundAtProcessor extends Omit<Named, 'unchecked' | 'processor_statement'> {
  readonly outcome: 'executed' | 'declined'
  readonly message?: string
}

/** What was found, as the result of the call that it is about, and the step that makes that call. Null: there is no such call. */
export async function evidenceOf(
  { once, pool, gateways }: Doors & { readonly once: Onlyonce<PostgresTx> },
  record: RecordId,
  found: FoundAtProcessor,
) {
  const shown = await operator(once).show(record)
  const looking = lookingFor({ pool, gateways }, shown, record, 'outcome')
  const executed = found.outcome === 'executed'
  if (!executed && shown.record !== null)
    await checkNotDone(looking, record, { unchecked: false, stated: false })
  const told = executed ? await checkFound(looking, record, found) : { declined: found.message ?? null }
  // Only a look: a worker settles it later, and there the index decides.
  if (found.gateway_id !== undefined && isNamed(record.operation)) {
    const owner = await ownerOf(pool, record, found.gateway_id)
    if (owner !== null) throw gatewayIdTaken(owner)
  }
  return await evidenceFor(pool, record, told)
}
