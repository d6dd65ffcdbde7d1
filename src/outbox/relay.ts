import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import type { Engine } from '../onlyonce/engine.ts'
import type { Ran, Worker } from '../onlyonce/worker.ts'
import { throwWithoutRequest } from '../record/failure.ts'
import type { OutboxStore } from '../store/outbox.ts'
import { Courier } from './courier.ts'
import { JobRunner } from './jobs.ts'
import {
  checkJobs,
  type RelayOptions,
  type RelaySettings,
  relaySettings,
  resolveDestinations,
} from './options.ts'
import { outboxOf } from './outbox.ts'

/** A worker that delivers events and runs jobs. */
export interface Relay extends Worker {
  /** Resolves when nothing is under way any more. Call it before the process ends. */
  drain(): Promise<void>
}

/**
 * Delivers events to destinations, at least once and in order of their aggregates, and runs staged jobs. Any number
 * of them may run at once, in any number of processes.
 *
 * @example
 * const worker = relay(once, {
 *   destinations: { billing: httpPublisher({ url }), log: async (events) => console.log(events) },
 *   jobs: { send_receipt: async ({ id, payload }, { signal }) => mail.send(payload, { messageId: id, signal }) },
 * })
 * await worker.runOnce()
 */
export function relay<Tx>(once: Onlyonce<Tx>, options: RelayOptions): Relay {
  const { engine, store, ready } = outboxOf(once)
  return new OutboxRelay(engine, store, ready, options)
}

type Task = () => Promise<Ran>

class OutboxRelay<Tx> implements Relay {
  readonly name = 'relay'
  readonly #engine: Engine<Tx>
  readonly #store: OutboxStore
  readonly #ready: () => Promise<void>
  readonly #settings: RelaySettings
  readonly #couriers: readonly Courier[]
  readonly #tasks: ReadonlyMap<string, Task>
  /** What an earlier run has left under way. Jobs may be so several times over; a destination only once. */
  readonly #underWay = new Map<string, Promise<Ran>>()
  readonly #all = new Set<Promise<unknown>>()
  #registered = false
  #nextLag: Deadline | null = null
  #nextClean: Deadline | null = null

  constructor(engine: Engine<Tx>, store: OutboxStore, ready: () => Promise<void>, options: RelayOptions) {
    const settings = relaySettings(options)
    const { observers, crashPoint } = engine
    this.#engine = engine
    this.#store = store
    this.#ready = ready
    this.#settings = settings
    this.#couriers = resolveDestinations(options.destinations).map(
      (destination) => new Courier(destination, store, settings, observers, crashPoint),
    )
    const jobs = checkJobs(options.jobs)
    if (this.#couriers.length === 0 && jobs.size === 0) {
      throw new OnlyonceError('option_invalid', { detail: 'relay() needs destinations, or jobs.' })
    }
    const runner = new JobRunner(jobs, store, settings, observers, crashPoint)
    this.#tasks = new Map<string, Task>([
      ...this.#couriers.map((courier): [string, Task] => [`to ${courier.name}`, () => courier.round()]),
      ...(jobs.size > 0 ? [['jobs', () => runner.round()] as [string, Task]] : []),
      ['upkeep', () => this.#keepUp()],
    ])
  }

  runOnce(): Promise<Ran> {
    return this.#batch().catch(throwWithoutRequest)
  }

  async #batch(): Promise<Ran> {
    await this.#ready()
    const routed = this.#couriers.length > 0 ? await this.#route() : false
    const started = [...this.#tasks].flatMap(([name, task]) => this.#start(name, task))
    const ends: PromiseSettledResult<Ran>[] = []
    const all = Promise.all(
      started.map((one) =>
        one.then(
          (value) => void ends.push({ status: 'fulfilled', value }),
          (reason) => void ends.push({ status: 'rejected', reason }),
        ),
      ),
    )
    await within(LIMITS.relayPatienceMs, all)
    return sum(ends, routed)
  }

  async drain(): Promise<void> {
    while (this.#all.size > 0) await Promise.allSettled(this.#all)
  }

  /** A task that is still under way is not started again, but for jobs, which have a bound of their own. */
  #start(name: string, task: Task): readonly Promise<Ran>[] {
    if (this.#underWay.has(name) && name !== 'jobs') return []
    const one = task().finally(() => {
      this.#all.delete(one)
      if (this.#underWay.get(name) === one) this.#underWay.delete(name)
    })
    // A courier that is left behind has told its error through the store already.
    one.catch(() => {})
    this.#underWay.set(name, one)
    this.#all.add(one)
    return [one]
  }

  async #route(): Promise<boolean> {
    if (!this.#registered) {
      await this.#store.register(this.#couriers.map(({ name }) => name))
      this.#registered = true
    }
    this.#engine.crashPoint('relay.route.before')
    const { more } = await this.#store.route()
    this.#engine.crashPoint('relay.route.after')
    return more
  }

  /** Removes what is old, and tells how far behind the destinations are. */
  async #keepUp(): Promise<Ran> {
    if (this.#nextClean === null || this.#nextClean.passed) {
      const { deliveredRetentionMs, inboxRetentionMs } = this.#settings
      const retention = { deliveredMs: deliveredRetentionMs, inboxMs: inboxRetentionMs }
      this.#nextClean = new Deadline(LIMITS.cleanEveryMs)
      this.#engine.crashPoint('relay.clean.before')
      if (await this.#store.clean(retention)) this.#nextClean = null
      this.#engine.crashPoint('relay.clean.after')
    }
    const { observers } = this.#engine
    if (!observers.none && (this.#nextLag === null || this.#nextLag.passed)) {
      this.#nextLag = new Deadline(LIMITS.lagEveryMs)
      const ours = new Set(this.#couriers.map(({ name }) => name))
      for (const lag of await this.#store.lag()) {
        if (ours.has(lag.destination)) observers.emit({ signal: 'outbox_lag', ...lag })
      }
    }
    return { done: 0, more: false }
  }
}

/** Throws where nothing could be asked; what went wrong beside something else was told already. */
function sum(ends: readonly PromiseSettledResult<Ran>[], routed: boolean): Ran {
  const ran = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  const failed = ends.find((end) => end.status === 'rejected')
  if (ran.length === 0 && failed?.status === 'rejected') throw failed.reason
  return {
    done: ran.reduce((total, { done }) => total + done, 0),
    more: routed || ran.some(({ more }) => more),
  }
}

async function within(maxMs: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const enough = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, maxMs)
  })
  await Promise.race([promise, enough])
  clearTimeout(timer)
}
