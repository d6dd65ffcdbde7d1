import { randomUUID } from 'node:crypto'
import { LIMITS } from '../../core/limits.ts'
import { withoutPrefix, withPrefix } from '../event-id.ts'
import type { HeldEvent, OutboxEvent, RoundEnd, Taken, TakenEvent } from '../outbox.ts'
import type { Connections } from './connections.ts'
import { bind, type Row } from './flush.ts'
import type { Value } from './messages.ts'
import { type OutboxStatements, SOON } from './outbox-statements.ts'
import { arrayLiteral } from './rows.ts'

/** Takes lanes and reads what is in them: one flush and one transaction, but a snapshot for each statement. */
export async function take(
  connections: Connections,
  { takeLanes, readLanes, readHeld }: OutboxStatements,
  destination: string,
  eventsMax: number,
  leaseMs: number,
): Promise<Taken | null> {
  const claimId = randomUUID()
  const lanesMax = LIMITS.lanesTakenMax
  const laneMax = Math.ceil(eventsMax / lanesMax)
  const { rows } = await connections.run(
    ...SOON,
    bind(takeLanes, destination, claimId, `${leaseMs}`, `${lanesMax}`),
    bind(readLanes, destination, claimId, `${laneMax}`),
    bind(readHeld, destination, claimId, `${eventsMax}`),
  )
  const [, , lanes, fresh, held] = rows
  if (lanes!.length === 0) return null
  return {
    claimId,
    lanes: lanes!.map(([lane, batch, place]) => ({
      lane: Number(lane),
      batch: Number(batch),
      place: Number(place),
    })),
    // Fresh ones first: what failed before must not keep them waiting.
    events: [...fresh!.map(readFresh), ...onceEach(held!.map(readHeldEvent))],
  }
}

/** One that was parked, and is tried again, may stand in front of another that is due: both bring those behind them. */
function onceEach(held: readonly TakenEvent[]): readonly TakenEvent[] {
  const seen = new Set<string>()
  return held.filter(({ event }) => !seen.has(event!.id) && seen.add(event!.id))
}

function readFresh(row: Row): TakenEvent {
  const [lane, batch, place, blocked, ...event] = row
  return {
    from: 'lane',
    at: { lane: Number(lane), batch: Number(batch), place: Number(place) },
    blocked: blocked === 't',
    event: event[1] === null ? null : readEvent(event),
  }
}

function readHeldEvent(row: Row): TakenEvent {
  const [lane, batch, tries, refusals, ...event] = row
  return {
    from: 'held',
    at: { lane: Number(lane), batch: Number(batch), place: 0 },
    tries: Number(tries),
    refusals: Number(refusals),
    event: readEvent(event),
  }
}

function readEvent([account, id, aggregate, sequence, type, payload, emittedAt]: Row): OutboxEvent {
  return {
    id: withPrefix('evt', id!),
    account: account!,
    type: type!,
    aggregate: aggregate ?? null,
    sequence: sequence === null ? null : Number(sequence),
    payload: JSON.parse(payload!),
    emittedAt: Number(emittedAt),
  }
}

/** Ends a round in one transaction. Without trouble it is one small statement. */
export async function done(
  connections: Connections,
  statements: OutboxStatements,
  { destination, claimId, lanes, hold, again, released }: RoundEnd,
): Promise<readonly number[]> {
  const { moveCursors, insertHeld, updateHeld, deleteHeld, promoteHeld } = statements
  const parked = [...hold, ...again].filter(({ next }) => next === 'parked')
  const left = aggregatesOf([...parked, ...released])
  const bounds = [
    bind(
      moveCursors,
      destination,
      claimId,
      arrayLiteral(lanes.map(({ lane }) => `${lane}`)),
      arrayLiteral(lanes.map(({ batch }) => `${batch}`)),
      arrayLiteral(lanes.map(({ place }) => `${place}`)),
    ),
    ...(hold.length > 0 ? [bind(insertHeld, destination, claimId, ...heldValues(hold))] : []),
    ...(again.length > 0 ? [bind(updateHeld, destination, claimId, ...heldValues(again))] : []),
    ...(released.length > 0
      ? [
          bind(
            deleteHeld,
            destination,
            claimId,
            arrayLiteral(released.map(({ event }) => event!.account)),
            arrayLiteral(released.map(({ event }) => withoutPrefix(event!.id))),
          ),
        ]
      : []),
    ...(left.length > 0
      ? [
          bind(
            promoteHeld,
            destination,
            arrayLiteral(left.map(({ account }) => account)),
            arrayLiteral(left.map(({ aggregate }) => aggregate)),
          ),
        ]
      : []),
  ]
  const { rows } = await connections.run(...SOON, ...bounds)
  return rows[2]!.map(([lane]) => Number(lane))
}

/** The aggregates of events that leave the queue, each once: the events behind them are first now. */
function aggregatesOf(leaving: readonly { readonly event: OutboxEvent | null }[]): readonly OutboxEvent[] {
  const events = leaving.map(({ event }) => event!).filter(({ aggregate }) => aggregate !== null)
  return [...new Map(events.map((event) => [`${event.account}\0${event.aggregate}`, event])).values()]
}

function heldValues(held: readonly HeldEvent[]): Value[] {
  return [
    arrayLiteral(held.map(({ event }) => event.account)),
    arrayLiteral(held.map(({ event }) => withoutPrefix(event.id))),
    arrayLiteral(held.map(({ at }) => `${at.lane}`)),
    arrayLiteral(held.map(({ at }) => `${at.batch}`)),
    arrayLiteral(held.map(({ event }) => event.aggregate)),
    arrayLiteral(held.map(({ event }) => (event.sequence === null ? null : `${event.sequence}`))),
    arrayLiteral(held.map(({ tries }) => `${tries}`)),
    arrayLiteral(held.map(({ refusals }) => `${refusals}`)),
    arrayLiteral(held.map(({ next }) => (typeof next === 'string' ? null : `${next.waitMs}`))),
    arrayLiteral(held.map(({ next }) => `${next === 'parked'}`)),
    arrayLiteral(held.map(({ failure }) => failure?.code ?? null)),
    arrayLiteral(held.map(({ failure }) => failure?.message ?? null)),
  ]
}
