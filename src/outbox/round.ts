import type { Deadline } from '../core/retry.ts'
import { failureOf } from '../record/failure.ts'
import type { Failure } from '../record/index.ts'
import type { LanePlace, OutboxEvent, Taken, TakenEvent } from '../store/outbox.ts'
import type { PublishResult } from './publisher.ts'

export interface FailedTry {
  readonly taken: TakenEvent
  readonly failure: Failure
  /** The destination named this very event. */
  readonly refused: boolean
  /** Nothing else was in its publish. */
  readonly alone: boolean
}

/** What became of the events of one round. Those that are nowhere in here were not tried. */
export interface Round {
  readonly delivered: readonly TakenEvent[]
  readonly failed: readonly FailedTry[]
  /** Not tried, because an earlier one of their aggregate is not delivered. */
  readonly behind: readonly TakenEvent[]
  /** Held before, and not wanted any more. */
  readonly unwanted: readonly TakenEvent[]
  /** How many of the events, from the first on, are dealt with. */
  readonly passed: number
  /** It took something, or answered about a single event. */
  readonly alive: boolean
  readonly gone: boolean
  /** The last error of all. */
  readonly failure: Failure | null
}

export interface RoundOptions {
  readonly wants: (type: string) => boolean
  /** Throws when nothing was taken, or when it is not known what was. */
  readonly publish: (events: readonly OutboxEvent[]) => Promise<PublishResult>
  readonly publishMax: number
  /** The destination was away: begin with a single event. */
  readonly probing: boolean
  readonly deadline: Deadline
}

/** Two events that fail alone, one after the other: it is not the events. */
const FAILURES_MAX = 2

/**
 * Publishes what was taken, in order. A publish that throws says nothing about single events, so the next one has a
 * single event, and then twice as many each time: an event that cannot be published is soon alone in its publish
 * and steps aside, and a destination that is away costs few tries.
 */
export async function deliver(taken: Taken, options: RoundOptions): Promise<Round> {
  const { events } = taken
  const [delivered, failed]: [TakenEvent[], FailedTry[]] = [[], []]
  const [behind, unwanted]: [TakenEvent[], TakenEvent[]] = [[], []]
  const stopped = new Set<string>()
  let passed = 0
  let size = options.probing ? 1 : options.publishMax
  let failures = 0
  let alive = false
  let gone = false
  let failure: Failure | null = null
  while (passed < events.length && failures < FAILURES_MAX && !gone && !options.deadline.passed) {
    const chunk = cut(events, passed, size, options.wants, stopped)
    const ends = chunk.events.length === 0 ? SILENCE : await tryPublish(chunk.events, options.publish)
    gone = ends.gone
    failure = ends.failure ?? failure
    if (!ends.alive && ends.failure !== null && chunk.events.length > 1) {
      size = 1
      continue
    }
    for (const one of chunk.events) {
      const end = ends.failed.get(one.event!.id)
      if (end === undefined) delivered.push(one)
      else if (stopped.has(groupOf(one))) behind.push(one)
      else {
        failed.push({ taken: one, ...end, alone: chunk.events.length === 1 })
        stopped.add(groupOf(one))
      }
    }
    behind.push(...chunk.behind)
    unwanted.push(...chunk.unwanted)
    passed = chunk.until
    alive ||= ends.alive
    failures = ends.alive || ends.failure === null ? failures : failures + 1
    if (ends.alive) [failures, size] = [0, Math.min(size * 2, options.publishMax)]
  }
  return { delivered, failed, behind, unwanted, passed, alive, gone, failure }
}

/** Where the cursors stand after the first `passed` events. */
export function placesAfter(taken: Taken, passed: number): readonly LanePlace[] {
  const places = new Map(taken.lanes.map((place) => [place.lane, place]))
  for (const { from, at } of taken.events.slice(0, passed)) if (from === 'lane') places.set(at.lane, at)
  return [...places.values()]
}

/** Events that have to stay in order have the same group. */
export function groupOf({ event }: TakenEvent): string {
  return event!.aggregate === null ? event!.id : `${event!.account}\0${event!.aggregate}`
}

interface Chunk {
  readonly events: readonly TakenEvent[]
  readonly behind: readonly TakenEvent[]
  readonly unwanted: readonly TakenEvent[]
  readonly until: number
}

function cut(
  events: readonly TakenEvent[],
  start: number,
  size: number,
  wants: (type: string) => boolean,
  stopped: ReadonlySet<string>,
): Chunk {
  const [chosen, behind, unwanted]: [TakenEvent[], TakenEvent[], TakenEvent[]] = [[], [], []]
  let until = start
  for (; until < events.length && chosen.length < size; until += 1) {
    const one = events[until]!
    if (one.event === null || !wants(one.event.type)) {
      if (one.from === 'held') unwanted.push(one)
    } else if ((one.from === 'lane' && one.blocked) || stopped.has(groupOf(one))) behind.push(one)
    else chosen.push(one)
  }
  return { events: chosen, behind, unwanted, until }
}

interface Ends {
  readonly failed: ReadonlyMap<string, { readonly failure: Failure; readonly refused: boolean }>
  readonly alive: boolean
  readonly gone: boolean
  readonly failure: Failure | null
}

const SILENCE: Ends = { failed: new Map(), alive: false, gone: false, failure: null }

async function tryPublish(chunk: readonly TakenEvent[], publish: RoundOptions['publish']): Promise<Ends> {
  const events = chunk.map(({ event }) => event!)
  try {
    const { failed: told = [], gone = false } = await publish(events)
    const failed = new Map(
      told.map(({ id, error, refused = false }) => [id, { failure: failureOf(error), refused }]),
    )
    const some = events.some(({ id }) => !failed.has(id))
    const refused = [...failed.values()].some((end) => end.refused)
    return { failed, alive: some || refused, gone, failure: [...failed.values()].at(-1)?.failure ?? null }
  } catch (error) {
    const failure = failureOf(error)
    const failed = new Map(events.map(({ id }) => [id, { failure, refused: false }]))
    return { failed, alive: false, gone: false, failure }
  }
}
