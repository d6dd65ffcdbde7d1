import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown, requireList } from '../core/options.ts'
import { checkName, type TakenJob } from '../store/outbox.ts'
import type { Publish, Publisher } from './publisher.ts'

/** A publisher, or a publisher of some types of events alone. */
export type Destination =
  | Publish
  | Publisher
  | { readonly publisher: Publish | Publisher; readonly types?: readonly string[] }

/** What a job is given beside itself. */
export interface JobContext {
  /** Aborted when the time for this job is over; soon after that another relay may run it. */
  readonly signal: AbortSignal
}

/** A job as it is given to its function. It may run more than once: its id is the same each time. */
export type Job = TakenJob
export type RunJob = (job: Job, context: JobContext) => Promise<unknown>

export interface RelayOptions {
  /**
   * By name. The name is kept in the database: a new name is a new destination, which gets events from now on.
   *
   * @default {}
   */
  readonly destinations?: Readonly<Record<string, Destination>>
  /**
   * By the name under which they are staged.
   *
   * @default {}
   */
  readonly jobs?: Readonly<Record<string, RunJob>>
  /**
   * Events that a publisher is given at once.
   *
   * @default 1_000
   */
  readonly publishMax?: number
  /** @default 10_000 */
  readonly publishTimeoutMs?: number
  /**
   * How long a relay is presumed alive within one round; after a crash others go on when it is over.
   *
   * @default 30_000
   */
  readonly leaseMs?: number
  /**
   * Refusals after which an event is parked.
   *
   * @default 10
   */
  readonly eventTriesMax?: number
  /** @default 100 */
  readonly relayBackoffMinMs?: number
  /** @default 60_000 */
  readonly relayBackoffMaxMs?: number
  /** @default 20 */
  readonly jobsAtOnce?: number
  /** @default 60_000 */
  readonly jobTimeoutMs?: number
  /** @default 30 */
  readonly jobAttemptsMax?: number
  /** @default 1_000 */
  readonly jobBackoffMinMs?: number
  /** @default 3_600_000 */
  readonly jobBackoffMaxMs?: number
  /**
   * How long delivered events, and done jobs that have a key, are kept.
   *
   * @default 86_400_000
   */
  readonly deliveredRetentionMs?: number
  /**
   * How long messages in the inbox are known.
   *
   * @default 2_592_000_000
   */
  readonly inboxRetentionMs?: number
}

export interface ResolvedDestination {
  readonly name: string
  readonly publish: Publish
  readonly wants: (type: string) => boolean
}

type Numbers = Omit<RelayOptions, 'destinations' | 'jobs'>
export type RelaySettings = Readonly<Record<keyof Numbers, number>>

const DEFAULTS: RelaySettings = {
  publishMax: LIMITS.publishMax,
  publishTimeoutMs: LIMITS.publishTimeoutMs,
  leaseMs: LIMITS.relayLeaseMs,
  eventTriesMax: LIMITS.eventTriesMax,
  relayBackoffMinMs: LIMITS.relayBackoffMinMs,
  relayBackoffMaxMs: LIMITS.relayBackoffMaxMs,
  jobsAtOnce: LIMITS.jobsAtOnce,
  jobTimeoutMs: LIMITS.jobTimeoutMs,
  jobAttemptsMax: LIMITS.jobAttemptsMax,
  jobBackoffMinMs: LIMITS.jobBackoffMinMs,
  jobBackoffMaxMs: LIMITS.jobBackoffMaxMs,
  deliveredRetentionMs: LIMITS.deliveredRetentionMs,
  inboxRetentionMs: LIMITS.inboxRetentionMs,
}

const NAMES = {
  ...(Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, true])) as OptionNames<Numbers>),
  destinations: true,
  jobs: true,
} satisfies OptionNames<RelayOptions>

export function relaySettings(options: RelayOptions): RelaySettings {
  refuseUnknown('relay()', options, NAMES)
  const { destinations: _, jobs: __, ...numbers } = options
  const settings = Object.fromEntries(
    Object.entries(DEFAULTS).map(([name, value]) => [
      name,
      wholeNumber(name, numbers[name as keyof Numbers] ?? value),
    ]),
  ) as RelaySettings
  if (settings.publishTimeoutMs > settings.leaseMs / 2) {
    refuse('publishTimeoutMs may be half of leaseMs at most: a relay that is late must not lose its lanes.')
  }
  if (settings.jobTimeoutMs > LIMITS.timerMaxMs) refuse('jobTimeoutMs is more than a timer can wait.')
  return settings
}

export function resolveDestinations(
  given: Readonly<Record<string, Destination>> = {},
): readonly ResolvedDestination[] {
  return Object.entries(given).map(([name, destination]) => {
    checkName('The name of a destination', name)
    const { publisher, types } =
      typeof destination === 'object' && destination !== null && 'publisher' in destination
        ? checked(name, destination)
        : { publisher: destination, types: undefined }
    if (types !== undefined) requireList(`types of destination ${name}`, types)
    const wanted = types === undefined ? null : new Set(types)
    return { name, publish: publishOf(name, publisher), wants: (type) => wanted?.has(type) ?? true }
  })
}

function checked<T extends object>(name: string, destination: T): T {
  refuseUnknown(`Destination ${name}`, destination, { publisher: true, types: true })
  return destination
}

function publishOf(name: string, publisher: Publish | Publisher): Publish {
  if (typeof publisher === 'function') return publisher
  if (typeof publisher?.publish !== 'function') {
    refuse(`Destination ${name} needs a publisher: a function, or an object with publish().`)
  }
  return (events, context) => publisher.publish(events, context)
}

export function checkJobs(given: Readonly<Record<string, RunJob>> = {}): ReadonlyMap<string, RunJob> {
  for (const [name, run] of Object.entries(given)) {
    checkName('The name of a job', name)
    if (typeof run !== 'function') refuse(`Job ${name} needs a function.`)
  }
  return new Map(Object.entries(given))
}

function wholeNumber(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) refuse(`${name} must be a whole number, at least 1.`)
  return value
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
