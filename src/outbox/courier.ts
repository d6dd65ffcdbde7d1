import { LIMITS } from '../core/limits.ts'
import { backoffMs, Deadline } from '../core/retry.ts'
import type { Observers } from '../observe/index.ts'
import type { Ran } from '../onlyonce/worker.ts'
import type { CrashPoint } from '../store/contract.ts'
import type { HeldEvent, OutboxEvent, OutboxStore, Taken } from '../store/outbox.ts'
import type { RelaySettings, ResolvedDestination } from './options.ts'
import type { PublishResult } from './publisher.ts'
import { deliver, type FailedTry, placesAfter, type Round } from './round.ts'

const IDLE: Ran = { done: 0, more: false }

/** Brings events to one destination, and knows how it is doing. */
export class Courier {
  readonly #destination: ResolvedDestination
  readonly #store: OutboxStore
  readonly #settings: RelaySettings
  readonly #observers: Observers
  readonly #crashPoint: CrashPoint
  /** How often in a row it took nothing, and until when it is left alone. In this process: others ask for themselves. */
  #away = 0
  #closed: Deadline | null = null
  /** It has taken something since an event that was held failed last. */
  #took = false

  constructor(
    destination: ResolvedDestination,
    store: OutboxStore,
    settings: RelaySettings,
    observers: Observers,
    crashPoint: CrashPoint,
  ) {
    this.#destination = destination
    this.#store = store
    this.#settings = settings
    this.#observers = observers
    this.#crashPoint = crashPoint
  }

  get name(): string {
    return this.#destination.name
  }

  /** Takes a batch, publishes it, and says what came of it. */
  async round(): Promise<Ran> {
    if (this.#closed !== null && !this.#closed.passed) return IDLE
    const { publishMax, leaseMs } = this.#settings
    // Counted from before the lease is: half of it is for this round, the other half for its last publish.
    const deadline = new Deadline(leaseMs / 2)
    this.#crashPoint('relay.take.before')
    const taken = await this.#store.take(this.name, publishMax, leaseMs)
    this.#crashPoint('relay.take.after')
    if (taken === null) return IDLE
    const round = await deliver(taken, {
      wants: this.#destination.wants,
      publish: (events) => this.#publish(events),
      publishMax,
      probing: this.#away > 0,
      deadline,
    })
    await this.#end(taken, round)
    this.#tell(round)
    const tried = round.delivered.length + round.failed.length
    return { done: tried, more: round.alive || (round.passed > 0 && round.failed.length === 0) }
  }

  async #publish(events: readonly OutboxEvent[]): Promise<PublishResult> {
    const controller = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`The publish took longer than ${this.#settings.publishTimeoutMs} ms.`)
        controller.abort(error)
        reject(error)
      }, this.#settings.publishTimeoutMs)
    })
    this.#crashPoint('relay.publish.before')
    try {
      const context = { signal: controller.signal, destination: this.name }
      const published = this.#destination.publish(events, context)
      return (await Promise.race([published, late])) ?? {}
    } finally {
      clearTimeout(timer)
      this.#crashPoint('relay.publish.after')
    }
  }

  async #end(taken: Taken, round: Round): Promise<void> {
    const { hold, again, passed } = this.#judge(taken, round)
    const unheld = new Set(taken.events.slice(0, passed))
    const behind = round.behind.filter((one) => one.from === 'lane' && unheld.has(one))
    this.#crashPoint('relay.done.before')
    await this.#store.done({
      destination: this.name,
      claimId: taken.claimId,
      lanes: placesAfter(taken, passed),
      hold: [
        ...hold,
        ...behind.map(({ at, event }) => ({
          at,
          event: event!,
          tries: 0,
          refusals: 0,
          next: 'behind' as const,
          failure: null,
        })),
      ],
      again,
      released: [...round.delivered, ...round.unwanted].filter(({ from }) => from === 'held'),
    })
    this.#crashPoint('relay.done.after')
    for (const held of [...hold, ...again]) this.#tellHeld(held)
  }

  /**
   * What becomes of events that failed. Where the destination took nothing at all, it may be the destination, and
   * nothing counts against the events: they stay where they are. But one that is alone, and failed before, steps
   * aside all the same: those that come after it may be luckier.
   */
  #judge(taken: Taken, round: Round): { hold: HeldEvent[]; again: HeldEvent[]; passed: number } {
    const fresh = round.failed.filter((one) => one.taken.from === 'lane')
    const held = round.failed.filter((one) => one.taken.from === 'held')
    const alive = round.alive || this.#took
    const again = held.map((one) => this.#next(one, alive))
    if (held.length > 0) this.#took = false
    if (round.delivered.length > 0) this.#took = true
    const stepsAside = round.alive || (fresh.length === 1 && this.#away > 0 && !round.gone)
    if (stepsAside) {
      return { hold: fresh.map((one) => this.#next(one, round.alive)), again, passed: round.passed }
    }
    const first = fresh[0] === undefined ? round.passed : taken.events.indexOf(fresh[0].taken)
    return { hold: [], again, passed: Math.min(first, round.passed) }
  }

  #next({ taken, failure, refused, alone }: FailedTry, alive: boolean): HeldEvent {
    const { eventTriesMax, relayBackoffMinMs, relayBackoffMaxMs } = this.#settings
    const before = taken.from === 'held' ? taken : { tries: 0, refusals: 0 }
    const tries = before.tries + 1
    const refusals = before.refusals + (refused || (alone && alive) ? 1 : 0)
    const backoff = { minMs: relayBackoffMinMs, maxMs: relayBackoffMaxMs }
    const next = refusals >= eventTriesMax ? 'parked' : { waitMs: backoffMs(tries, Math.random, backoff) }
    const { at, event } = taken
    return { at, event: event!, tries, refusals, next, failure }
  }

  /** Whether it lives, for the next round and for observers. */
  #tell({ delivered, failed, alive, gone, failure }: Round): void {
    const destination = this.name
    const { relayBackoffMinMs, relayBackoffMaxMs } = this.#settings
    if (delivered.length > 0) {
      this.#observers.emit({ signal: 'outbox_delivered', destination, count: delivered.length })
    }
    if (alive) [this.#away, this.#closed] = [0, null]
    const ofLane = failed.some(({ taken }) => taken.from === 'lane')
    if (!gone && (alive || failure === null || !ofLane)) return
    this.#away += 1
    const backoff = { minMs: relayBackoffMinMs, maxMs: relayBackoffMaxMs }
    const waitMs = gone ? LIMITS.relayBackoffMaxMs : backoffMs(this.#away, Math.random, backoff)
    this.#closed = new Deadline(waitMs)
    const told = failure ?? { code: 'gone', message: 'It says that it is gone.' }
    const kind = gone ? 'gone' : 'away'
    this.#observers.emit({ signal: 'outbox_failed', destination, kind, failure: told, event: null })
  }

  #tellHeld({ event, next, failure }: HeldEvent): void {
    const { account, id, type } = event
    this.#observers.emit({
      signal: 'outbox_failed',
      destination: this.name,
      kind: next === 'parked' ? 'parked' : 'held',
      failure: failure!,
      event: { account, id, type },
    })
  }
}
