/** What the processor shows of the calls of a request, against what an operator says of them. */
import type { RecordId } from 'onlyonce'
import type { Charge } from '../gateway/index.ts'
import { Refused } from '../problems.ts'
import { askOr } from './asking.ts'
import { type Looking, OBJECTS } from './calls.ts'
import { modeOf } from './gateways.ts'
import { callStepOf, findHeld, type Holding } from './told.ts'
import { refuseTooEarly } from './visible.ts'

/** An operator says that a capture or a cancellation was carried out: throws where the processor does not show it. */
export async function checkDone(
  looking: Looking,
  { account, operation }: RecordId,
  held: Holding,
  unchecked: boolean,
): Promise<void> {
  const gateway = looking.gateways[modeOf(account)]
  if (operation === 'payments.capture') {
    const asked = await askOr(gateway, unchecked, (there, signal) =>
      there.lookUp('payment', held.gateway_id!, signal),
    )
    if (asked !== null && !isCaptured(asked.answer, held, looking.calls))
      throw denied(
        looking,
        `The processor does not show this capture of ${held.amount} ${held.currency}. It has taken ${asked.answer?.taken ?? 0} of the payment in all, and ${held.captured} are booked.`,
      )
    return
  }
  const asked = await askOr(gateway, unchecked, (there, signal) => findVoid(there, held, looking, signal))
  if (asked !== null && asked.answer.status !== 'found')
    throw denied(looking, 'The processor does not show that it has let go of the payment.')
}

/** By the call of the request, or else by a person: then it is in what was taken, and in no call of ours. */
function isCaptured(charge: Charge | null, held: Holding, calls: readonly string[]): boolean {
  if (charge === null) return false
  const own = charge.captures.find(({ key }) => calls.includes(key))
  if (own !== undefined) return own.amount === held.amount
  const called = charge.captures.reduce((sum, { amount }) => sum + amount, 0)
  return charge.taken - called >= held.amount && charge.taken === held.captured + held.amount
}

/**
 * An operator says that a request was not carried out: throws where the processor shows a call of it that was, or may show one yet. Its
 * client would be told that it has failed, and would pay again. `stated`: the operator has the processor's own word that it will show none.
 */
export async function checkNotDone(
  looking: Looking,
  record: RecordId,
  { unchecked, stated }: { readonly unchecked: boolean; readonly stated: boolean },
): Promise<void> {
  const { account, operation } = record
  if (callStepOf(operation) === undefined) return
  const held = await findHeld(looking.pool, record)
  if (held === null) return
  const gateway = looking.gateways[modeOf(account)]
  const kind = OBJECTS[operation]
  if (kind === undefined) {
    await checkNotMoved(looking, record, held, unchecked)
    if (!stated) await refuseTooEarly(looking, record, looking.unanswered)
    return
  }
  const ended = new Set<string>(looking.voidCalls)
  for (const key of looking.calls) {
    const call = { key, of: kind === 'refund' ? held.gateway_id : null }
    const asked = await askOr(gateway, unchecked, (there, signal) => there.lookUpByKey(kind, call, signal))
    // The processor does a key once: what it shows without money is the end of that call, and nothing comes behind it.
    if (asked !== null && asked.answer.length > 0) ended.add(key)
    const shown = asked?.answer.find(hasMoney)
    if (shown === undefined) continue
    const { gateway_id: gatewayId, taken, given_back: givenBack, held: holds, currency } = shown
    throw denied(
      looking,
      `The processor shows ${gatewayId} under the key of this request: ${taken} ${currency} taken, ${givenBack} given back, ${holds} held. Decide executed with it, or give it back at the processor first.`,
    )
  }
  const allEnded = looking.calls.every((key) => ended.has(key))
  if (!allEnded && !stated) await refuseTooEarly(looking, record, looking.unanswered)
}

/** Of captures and cancellations, which make no object of their own. */
async function checkNotMoved(
  looking: Looking,
  { account, operation }: RecordId,
  held: Holding,
  unchecked: boolean,
): Promise<void> {
  const gateway = looking.gateways[modeOf(account)]
  if (operation === 'payments.capture') {
    const asked = await askOr(gateway, unchecked, (there, signal) =>
      there.lookUp('payment', held.gateway_id!, signal),
    )
    if (asked?.answer?.captures.some(({ key }) => looking.calls.includes(key)))
      throw denied(looking, 'The processor shows this capture under the key of the request. Decide executed.')
    return
  }
  const asked = await askOr(gateway, unchecked, (there, signal) => findVoid(there, held, looking, signal))
  if (asked !== null && asked.answer.status !== 'not_found')
    throw denied(
      looking,
      'The processor shows that it has let go of the payment, or has not decided. Decide executed.',
    )
}

const findVoid = (
  gateway: NonNullable<Looking['gateways']['test']>,
  { gateway_id: gatewayId }: Holding,
  { calls }: Looking,
  signal: AbortSignal,
) => gateway.findVoid({ gateway_id: gatewayId!, reason: null }, { key: calls[0]!, signal })

/** It holds money, has kept some of it, or may yet do so. */
function hasMoney({ status, taken, held, given_back: givenBack }: Charge): boolean {
  return status === 'open' || held > 0 || taken > givenBack
}

function denied({ field }: Looking, detail: string): Refused {
  return new Refused('invalid_request', { field, detail: `${detail} Nothing was decided.` })
}
