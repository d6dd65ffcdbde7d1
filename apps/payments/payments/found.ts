/** What an operator says to have found at the processor is compared with what the processor says. */
import type { RecordId } from 'onlyonce'
import type pg from 'pg'
import type { Charge, Gateway, Movement } from '../gateway/index.ts'
import { Refused } from '../problems.ts'
import { type Gateways, modeOf } from './gateways.ts'
import { callStepOf, type Found, findHeld, type Holding } from './told.ts'

export interface Named {
  /** What it is called at the processor. */
  readonly gateway_id?: string
  /** Until when it is held there. */
  readonly capture_before?: string
  /** The processor cannot be asked and will not be: the operator answers for what it would say. */
  readonly unchecked?: true
}

interface Doors {
  readonly pool: pg.Pool
  readonly gateways: Gateways
}

/** Of these the processor makes an object of their own. What others name is their payment. */
const OBJECTS: Readonly<Record<string, Movement['kind']>> = {
  'payments.create': 'payment',
  'refunds.create': 'refund',
}

/** Without its name at the processor, our books could never be compared with the processor's. */
export const isNamed = (operation: string): boolean => OBJECTS[operation] !== undefined

/** Throws `invalid_request` where the processor says otherwise, and `unavailable` where it says nothing. */
export async function checkFound(doors: Doors, record: RecordId, named: Named): Promise<Found> {
  const { account, operation } = record
  const { gateway_id } = named
  const kind = OBJECTS[operation]
  if (gateway_id === undefined && kind !== undefined) throw wrongId('gateway_id is missing.')
  const told = { executed: true, gateway_id: gateway_id ?? null, capture_before: null } as const
  if (callStepOf(operation) === undefined) return told
  const gateway = doors.gateways[modeOf(account)]
  if (gateway_id !== undefined) checkForm(gateway, kind ?? 'payment', gateway_id)
  const held = await findHeld(doors.pool, record)
  if (held === null) return told
  const found = { ...told, held: held.id }
  if (kind === undefined) {
    const other = gateway_id !== undefined && gateway_id !== held.gateway_id
    if (other) throw wrongId('gateway_id is not that of the payment.')
    return found
  }
  const charge = await lookUp(gateway, kind, gateway_id!, named.unchecked === true)
  if (charge !== null) compare(charge, account, held)
  return { ...found, capture_before: captureBefore(gateway!, kind, held, named, charge) }
}

/** Text that only looks like an id would be another one to the index that lets one charge belong to one payment. */
function checkForm(gateway: Gateway | undefined, kind: Movement['kind'], gateway_id: string): void {
  if (gateway === undefined) throw notAsked('No processor is set up for the mode of the account.')
  if (gateway.ids[kind].test(gateway_id)) return
  throw wrongId(`gateway_id is not what ${gateway.name} calls a ${kind}: ${gateway.ids[kind].source}.`)
}

/** Null where the operator answers for a processor that cannot be asked. */
async function lookUp(
  gateway: Gateway | undefined,
  kind: Movement['kind'],
  gateway_id: string,
  unchecked: boolean,
): Promise<Charge | null> {
  let charge: Charge | null
  try {
    charge = await gateway!.lookUp(kind, gateway_id, AbortSignal.timeout(gateway!.timeout_ms))
  } catch {
    if (unchecked) return null
    throw notAsked('The processor cannot be asked about gateway_id now.')
  }
  if (charge === null) throw wrongId(`The processor has no ${kind} with this gateway_id.`)
  return charge
}

function compare(charge: Charge, account: string, held: Holding): void {
  const { amount, currency, status } = charge
  const ours = (told: string | null, own: string) => told === null || told === own
  if (!ours(charge.account, account) || !ours(charge.reference, held.id))
    throw wrongId('gateway_id belongs to another payment or refund: the processor names it.')
  if (charge.of !== null && charge.of !== held.gateway_id)
    throw wrongId('gateway_id is a refund of another payment.')
  if (amount !== held.amount || currency !== held.currency)
    throw wrongId(
      `gateway_id is of ${amount} ${currency}, and the request of ${held.amount} ${held.currency}.`,
    )
  if (status === 'failed') throw wrongId('The processor says that gateway_id moved no money and holds none.')
  const undecided = status === 'open' || (status === 'held' && held.capture_method === 'automatic')
  if (undecided) throw wrongId('The processor has not decided about gateway_id yet.')
}

/** A hold without an end would never be let go of. The processor's own word is the limit, where there is one. */
function captureBefore(
  gateway: Gateway,
  kind: Movement['kind'],
  { capture_method }: Holding,
  { capture_before: given }: Named,
  charge: Charge | null,
): string | null {
  if (kind !== 'payment' || capture_method === 'automatic') return null
  const told = charge?.capture_before ?? null
  if (given === undefined) {
    if (told !== null) return told
    throw wrongTime('capture_before is missing: the processor does not say until when the money is held.')
  }
  const now = Date.now()
  const last_ms = told === null ? now + gateway.hold_max_ms : Date.parse(told)
  const at_ms = Date.parse(given)
  if (at_ms > now && at_ms <= last_ms) return given
  const last = new Date(last_ms).toISOString()
  throw wrongTime(`capture_before has to be in the future, and at the latest ${last}.`)
}

function wrongId(detail: string): Refused {
  return new Refused('invalid_request', { field: 'gateway_id', detail: `${detail} Nothing was decided.` })
}

function wrongTime(detail: string): Refused {
  return new Refused('invalid_request', { field: 'capture_before', detail: `${detail} Nothing was decided.` })
}

function notAsked(why: string): Refused {
  const detail = `${why} Nothing was decided. Try again later.`
  return new Refused('unavailable', { detail, more: { executed: 'not_by_this_request' } })
}
