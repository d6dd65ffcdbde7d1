import { createHmac } from 'node:crypto'
import { Agent, request } from 'node:http'
import { eventsOf, type GatewayEvent } from './books/events.ts'
import type { Effect } from './books/index.ts'
import type { Clock } from './clock.ts'
import type { Journal } from './journal.ts'
import type { GatewayState } from './wire.ts'

export interface WebhookTarget {
  readonly url: string
  readonly secret: string
}

/** A line of the book of deliveries: the first says which movement was the first to be announced, each other one what is over. */
export type DeliveryLine = { readonly first_place: number } | { readonly over: string }

const QUEUE_MAX = 100_000
const CONNECTIONS_MAX = 16
const ANSWER_MAX_MS = 10_000
/** Between tries, by the gateway's clock; after the last one it is given up. */
const PAUSES_MS = [1_000, 5_000, 60_000]
/** How long an event waits for another one to overtake it. */
const OVERTAKEN_MAX_MS = 10_000

/** Announces what was done, some time after it: no order is promised. What was not delivered before a restart is delivered after it. */
export class Webhooks {
  readonly #target: WebhookTarget | undefined
  readonly #clock: Clock
  readonly #book: Journal<DeliveryLine>
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS_MAX })
  readonly #counts = { delivered: 0, failed: 0, lost: 0, pending: 0, given_up: 0 }
  #waitingForNext: (() => void)[] = []

  constructor(target: WebhookTarget | undefined, clock: Clock, book: Journal<DeliveryLine>) {
    this.#target = target
    this.#clock = clock
    this.#book = book
  }

  get counts(): GatewayState['webhooks'] {
    return this.#counts
  }

  /** What was done before this process began, and is not told yet. */
  announceOld(effects: readonly Effect[]): void {
    if (this.#target === undefined) return
    const [first] = this.#book.lines
    if (first === undefined) this.#book.add({ first_place: effects.length }).catch(() => {})
    const firstPlace = first !== undefined && 'first_place' in first ? first.first_place : effects.length
    const over = new Set(this.#book.lines.map((line) => ('over' in line ? line.over : '')))
    for (const effect of effects.slice(firstPlace)) this.announce(effect, over)
  }

  announce(effect: Effect, over?: ReadonlySet<string>): void {
    if (this.#target === undefined) return
    for (const event of eventsOf(effect)) {
      if (over?.has(event.id)) continue
      if (this.#counts.pending >= QUEUE_MAX) this.#counts.given_up += 1
      // Nobody waits for it. What could not be posted, or noted, is announced again after the next start.
      else this.#see(event, effect, this.#target).catch(() => {})
    }
  }

  close(): void {
    this.#agent.destroy()
  }

  async #see(event: GatewayEvent, { entry }: Effect, target: WebhookTarget): Promise<void> {
    const { lost, doubled, reordered, late_ms: lateMs } = entry.webhooks ?? {}
    this.#counts.pending += 1
    if (lateMs !== undefined) await this.#clock.sleep(entry.at + lateMs - this.#clock.now())
    if (reordered) await Promise.race([this.#next(), this.#clock.sleep(OVERTAKEN_MAX_MS)])
    if (lost) this.#counts.lost += 1
    else await this.#deliver(event, target)
    if (doubled && !lost) await this.#deliver(event, target)
    // In this order: what is not pending any more is not sent again after a crash either.
    await this.#book.add({ over: event.id })
    this.#counts.pending -= 1
  }

  #next(): Promise<void> {
    return new Promise((resolve) => this.#waitingForNext.push(resolve))
  }

  async #deliver(event: GatewayEvent, target: WebhookTarget): Promise<void> {
    const body = JSON.stringify(event)
    for (const pauseMs of [...PAUSES_MS, null]) {
      if (await this.#post(body, target)) {
        this.#counts.delivered += 1
        for (const overtaken of this.#waitingForNext.splice(0)) overtaken()
        return
      }
      this.#counts.failed += 1
      if (pauseMs !== null) await this.#clock.sleep(pauseMs)
    }
    this.#counts.given_up += 1
  }

  #post(body: string, { url, secret }: WebhookTarget): Promise<boolean> {
    return new Promise((resolve) => {
      const outgoing = request(url, {
        method: 'POST',
        agent: this.#agent,
        headers: {
          'content-type': 'application/json; charset=utf-8',
          'content-length': Buffer.byteLength(body),
          'stripe-signature': sign(body, secret),
        },
      })
      outgoing.setTimeout(ANSWER_MAX_MS, () => outgoing.destroy())
      outgoing.on('response', (response) => {
        const { statusCode = 0 } = response
        response.resume().on('close', () => resolve(statusCode >= 200 && statusCode < 300))
      })
      outgoing.on('error', () => resolve(false))
      outgoing.end(body)
    })
  }
}

/** By the clock of the machine, not that of the gateway: it is the receiver's clock that judges its age. */
function sign(body: string, secret: string): string {
  const t = Math.floor(Date.now() / 1_000)
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.${body}`).digest('hex')}`
}
