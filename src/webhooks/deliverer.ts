import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { Engine } from '../onlyonce/engine.ts'
import type { Ran, Worker } from '../onlyonce/worker.ts'
import { throwWithoutRequest } from '../record/failure.ts'
import type { DeliveryEnd, TakenDelivery, WebhookStore } from '../store/webhooks.ts'
import { attempt } from './delivery.ts'
import type { WebhooksSettings } from './options.ts'

/** A worker that delivers webhooks, and removes what is old. */
export interface Deliverer extends Worker {
  /** Resolves when nothing is under way any more. Call it before the process ends. */
  drain(): Promise<void>
}

/**
 * Takes what is due and posts it, a bounded number at once and a few of them to one endpoint: one that is slow or dead takes its few
 * places, and none of another endpoint. A run does not wait for the slow ones; they go on beside the next.
 */
export class WebhookDeliverer<Tx> implements Deliverer {
  readonly name = 'webhooks'
  readonly #engine: Engine<Tx>
  readonly #store: WebhookStore
  readonly #settings: WebhooksSettings
  readonly #ready: () => Promise<void>
  readonly #underWay = new Set<Promise<void>>()
  readonly #busy = new Map<string, { account: string; endpoint: string; count: number }>()
  #nextClean: Deadline | null = null
  /** Places that are promised to a question under way. */
  #reserved = 0

  constructor(
    engine: Engine<Tx>,
    store: WebhookStore,
    settings: WebhooksSettings,
    ready: () => Promise<void>,
  ) {
    this.#engine = engine
    this.#store = store
    this.#settings = settings
    this.#ready = ready
  }

  runOnce(): Promise<Ran> {
    return this.#batch().catch(throwWithoutRequest)
  }

  async #batch(): Promise<Ran> {
    await this.#ready()
    const cleaned = await this.#clean()
    const taken = await this.#take()
    for (const delivery of taken) this.#start(delivery)
    // More may be due of the same endpoint: it is asked for when a place is free again.
    const ended = await this.#oneEnds()
    return { done: taken.length, more: cleaned || taken.length > 0 || ended }
  }

  async drain(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  async #take(): Promise<readonly TakenDelivery[]> {
    const { atOnce, perEndpoint, timeoutMs } = this.#settings
    const countMax = atOnce - this.#underWay.size - this.#reserved
    if (countMax <= 0) return []
    this.#reserved += countMax
    try {
      this.#engine.crashPoint('webhooks.take.before')
      const taken = await this.#store.take({
        countMax,
        leaseMs: timeoutMs + LIMITS.webhookLeaseMarginMs,
        perEndpointMax: perEndpoint,
        busy: [...this.#busy.values()],
      })
      this.#engine.crashPoint('webhooks.take.after')
      return taken
    } finally {
      this.#reserved -= countMax
    }
  }

  #start(delivery: TakenDelivery): void {
    const name = `${delivery.account}\0${delivery.endpoint}`
    const busy = this.#busy.get(name) ?? { account: delivery.account, endpoint: delivery.endpoint, count: 0 }
    busy.count += 1
    this.#busy.set(name, busy)
    const one = this.#deliver(delivery)
      // The store has told its error. The lease runs out, and it is delivered once more.
      .catch(() => {})
      .finally(() => {
        this.#underWay.delete(one)
        busy.count -= 1
        if (busy.count === 0) this.#busy.delete(name)
      })
    this.#underWay.add(one)
  }

  async #deliver(delivery: TakenDelivery): Promise<void> {
    const { crashPoint } = this.#engine
    const end = await attempt(delivery, this.#settings, crashPoint)
    crashPoint('webhooks.end.before')
    const { ours, disabled } = await this.#store.end(end)
    crashPoint('webhooks.end.after')
    if (ours) this.#tell(delivery, end)
    const { account, endpoint } = delivery
    if (disabled) this.#engine.observers.emit({ signal: 'webhook_disabled', account, endpoint })
  }

  #tell({ account, endpoint, message, type, attempts }: TakenDelivery, end: DeliveryEnd): void {
    const { observers } = this.#engine
    const { status, failure, durationMs } = end
    const outcome = typeof end.end === 'object' ? 'again' : end.end
    const of = { account, endpoint, message, type }
    observers.emit({ signal: 'webhook_attempted', ...of, outcome, attempts, status, failure, durationMs })
  }

  /** Waits until a delivery has ended, but not for long. */
  async #oneEnds(): Promise<boolean> {
    if (this.#underWay.size === 0) return false
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), LIMITS.relayPatienceMs)
    })
    const ended = Promise.race([...this.#underWay].map((one) => one.then(() => true)))
    try {
      return await Promise.race([ended, enough])
    } finally {
      clearTimeout(timer)
    }
  }

  /** True where there is more to remove. */
  async #clean(): Promise<boolean> {
    if (this.#nextClean !== null && !this.#nextClean.passed) return false
    this.#nextClean = new Deadline(LIMITS.cleanEveryMs)
    this.#engine.crashPoint('webhooks.clean.before')
    const more = await this.#store.clean(this.#settings.retentionMs)
    this.#engine.crashPoint('webhooks.clean.after')
    if (more) this.#nextClean = null
    return more
  }
}
