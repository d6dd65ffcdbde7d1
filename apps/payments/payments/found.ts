/** What an operator says to have found at the processor is compared with what the processor says. */
import type { RecordId } from 'onlyonce'
import type { Charge, Gateway, Movement } from '../gateway/index.ts'
import { Refused } from '../problems.ts'
import { askOr, notAsked } from './asking.ts'
import { type Looking, OBJECTS } from './calls.ts'
import { modeOf } from './gateways.ts'
import { checkDone } from './shown.ts'
import { callStepOf, type Found, findHeld, type Holding } from './told.ts'

export interface Named {
  /** What it is called at the processor. */
  readonly gateway_id?: string
  /** Until when it is held there. */
  readonly capture_before?: string
  /** The processor cannot be asked and will not be: the operator answers for what it would say. */
  readonly unchecked?: true
  /** Where the processor's own written word is kept that it has not carried out the request and never will. */
  readonly processor_statement?: string
}

/** Throws `invalid_request` where the processor says otherwise, and `unavailable` where it says nothing. */
export async function checkFound(looking: Looking, record: RecordId, named: Named): Promise<Found> {
  const { account, operation } = record
  const { gateway_id: gatewayId } = named
  const kind = OBJECTS[operation]
  if (gatewayId === undefined && kind !== undefined) throw wrongId('gateway_id is missing.')
  const told = { executed: true, gateway_id: gatewayId ?? null, capture_before: null } as const
  if (callStepOf(operation) === undefined) return told
  const gateway = looking.gateways[modeOf(account)]
  if (gatewayId !== undefined) checkForm(gateway, kind ?? 'payment', gatewayId)
  const held = await findHeld(looking.pool, record)
  if (held === null) return told
  const found = { ...told, held: held.id }
  if (kind === undefined) {
    const other = gatewayId !== undefined && gatewayId !== held.gateway_id
    if (other) throw wrongId('gateway_id is not that of the payment.')
    await checkDone(looking, record, held, named.unchecked === true)
    return found
  }
  const charge = await lookUp(gateway, kind, gatewayId!, named.unchecked === true)
  if (charge !== null) compare(charge, account, held, looking.calls)
  return { ...found, capture_before: captureBefore(gateway!, kind, held, named, charge) }
}

/** Text that only looks like an id would be another one to the index that lets one charge belong to one payment. */
function checkForm(gateway: Gateway | undefined, kind: Movement['kind'], gatewayId: string): void {
  if (gateway === undefined) throw notAsked('No processor is set up for the mode of the account.')
  if (gateway.ids[kind].test(gatewayId)) return
  throw wrongId(`gateway_id is not what ${gateway.name} calls a ${kind}: ${gateway.ids[kind].source}.`)
}

/** Null where the operator answers for a processor that cannot be asked. */
async function lookUp(
  gateway: Gateway | undefined,
  kind: Movement['kind'],
  gatewayId: string,
  unchecked: boolean,
): Promise<Charge | null> {
  const asked = await askOr(gateway, unchecked, (there, signal) => there.lookUp(kind, gatewayId, signal))
  if (asked === null) return null
  if (asked.answer === null) throw wrongId(`The processor has no ${kind} with this gateway_id.`)
  return asked.answer
}

function compare(charge: Charge, account: string, held: Holding, calls: readonly string[]): void {
  const { amount, currency, status } = charge
  const ours = (told: string | null, own: string) => told === null || told === own
  const called = charge.key === null || calls.includes(charge.key)
  if (!ours(charge.account, account) || !ours(charge.reference, held.id) || !called)
    throw wrongId('gateway_id belongs to another payment or refund: the processor names it.')
  if (charge.of !== null && charge.of !== held.gateway_id)
    throw wrongId('gateway_id is a refund of another payment.')
  if (amount !== held.amount || currency !== held.currency)
    throw wrongId(
      `gateway_id is of ${amount} ${currency}, and the request of ${held.amount} ${held.currency}.`,
    )
  if (status === 'failed') throw wrongId('The processor says that gateway_id moved no money and holds none.')
  if (status === 'open') throw wrongId('The processor has not decided about gateway_id yet.')
  if (charge.of === null) compareMoney(charge, held)
}

/** What is booked has to be what the processor has: all of it taken, or all of it held, and nothing given back. */
function compareMoney(charge: Charge, { amount, currency, capture_method: captureMethod }: Holding): void {
  const { taken, held, given_back: givenBack } = charge
  if (givenBack > 0)
    throw wrongId(
      `The processor has received ${taken} ${currency} of gateway_id and has given ${givenBack} of it back. ${GIVE_BACK}`,
    )
  if (captureMethod === 'manual') {
    if (taken === 0 && held === amount) return
    throw wrongId(
      `The payment is of ${amount} ${currency}, which have to be held. Of gateway_id the processor holds ${held} and has taken ${taken} already. ${GIVE_BACK}`,
    )
  }
  if (charge.status === 'held') throw wrongId('The processor has not decided about gateway_id yet.')
  if (taken !== amount)
    throw wrongId(
      `The processor has received ${taken} ${currency} of gateway_id, and the payment is of ${amount} ${currency}. ${GIVE_BACK}`,
    )
}

const GIVE_BACK = 'Give back at the processor what it has taken, and decide not_executed.'

/** A hold without an end would never be let go of. The processor's own word is the limit, where there is one. */
function captureBefore(
  gateway: Gateway,
  kind: Movement['kind'],
  { capture_method: captureMethod }: Holding,
  { capture_before: given }: Named,
  charge: Charge | null,
): string | null {
  if (kind !== 'payment' || captureMethod === 'automatic') return null
  const told = charge?.capture_before ?? null
  if (given === undefined) {
    if (told !== null) return told
    throw wrongTime('capture_before is missing: the processor does not say until when the money is held.')
  }
  const now = Date.now()
  const lastMs = told === null ? now + gateway.holdMaxMs : Date.parse(told)
  const atMs = Date.parse(given)
  if (atMs > now && atMs <= lastMs) return given
  const last = new Date(lastMs).toISOString()
  throw wrongTime(`capture_before has to be in the future, and at the latest ${last}.`)
}

function wrongId(detail: string): Refused {
  return new Refused('invalid_request', { field: 'gateway_id', detail: `${detail} Nothing was decided.` })
}

function wrongTime(detail: string): Refused {
  return new Refused('invalid_request', { field: 'capture_before', detail: `${detail} Nothing was decided.` })
}
