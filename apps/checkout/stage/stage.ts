import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FaultRule } from '../../gateway/index.ts'
import { passOn } from './line.ts'
import { type Processor, processorIn } from './processor.ts'
import { SecondServer } from './second-server.ts'

/**
 * What goes wrong with the next payment.
 *
 * - `lost_answer`: the server pays and answers, and the answer is lost on the way.
 * - `slow_processor`: the processor charges the card, and answers late.
 * - `server_killed`: the server is killed after the processor has charged the card and before the server knows it. Later requests go to
 *   another server, as behind a load balancer.
 */
export const STAGE_FAULTS = ['none', 'lost_answer', 'slow_processor', 'server_killed'] as const
export type StageFault = (typeof STAGE_FAULTS)[number]

/** Longer than the page waits for an attempt, and shorter than the server waits for the processor. */
const SLOW_MS = 4_000
const HELD_MAX_MS = 10_000
const HELD_LOOK_MS = 20

const RULES: Readonly<Record<StageFault, readonly FaultRule[]>> = {
  none: [],
  lost_answer: [],
  slow_processor: [{ fault: 'delay_after', ms: SLOW_MS, on: 'create' }],
  server_killed: [{ fault: 'hold_after', on: 'create' }],
}

export interface StageOptions {
  /** Where the service keeps its things. */
  readonly folder: string
  /** Where its sandbox processor keeps its own. */
  readonly gatewayFolder: string
  /** Where the service that serves the page listens. */
  readonly ownUrl: () => string
}

/** Everything that goes wrong between the page and the processor, on purpose. It exists in development alone. */
export class Stage {
  readonly #options: StageOptions
  #processor: Promise<Processor> | null = null
  #second: SecondServer | null = null
  #fault: StageFault = 'none'
  /** Whether the fault waits for its payment. Each strikes one payment, once. */
  #armed = false
  #killing: Promise<void> = Promise.resolve()

  constructor(options: StageOptions) {
    this.#options = options
  }

  processor(): Promise<Processor> {
    // A processor that could not be asked is looked for again.
    this.#processor ??= processorIn(this.#options.gatewayFolder).catch((error) => {
      this.#processor = null
      throw error
    })
    return this.#processor
  }

  /** Decides what becomes of the next payment. Resolves when everything for that is ready. */
  async arm(fault: StageFault): Promise<void> {
    await this.#killing
    const processor = await this.processor()
    await processor.misbehave(RULES[fault])
    if (fault === 'server_killed') {
      this.#second ??= new SecondServer({ folder: this.#options.folder, gatewayUrl: processor.url })
      await this.#second.start()
    }
    this.#fault = fault
    this.#armed = fault !== 'none'
  }

  /** A request of the page. `path` is that at the payment server. */
  carry(request: IncomingMessage, response: ServerResponse, path: string): void {
    const struck = this.#armed && request.method === 'POST' && path === '/v1/payments'
    // A server that refuses a payment for now is killed with the next attempt.
    const doomed = struck && this.#fault === 'server_killed'
    if (!doomed) this.#armed &&= !struck
    passOn(request, response, {
      target: doomed ? (this.#second?.url ?? null) : this.#options.ownUrl(),
      path,
      loseAnswer: struck && this.#fault === 'lost_answer',
    })
    if (doomed) this.#killing = this.#killInTheMiddle(response).catch((error) => console.error(error))
  }

  async close(): Promise<void> {
    await this.#second?.close()
    await this.#killing
  }

  /** The processor holds its answer back, so the moment is certain: the card is charged, and the server does not know it. */
  async #killInTheMiddle(response: ServerResponse): Promise<void> {
    const processor = await this.processor()
    const endMs = performance.now() + HELD_MAX_MS
    while ((await processor.state()).held.length === 0) {
      // It is answered: it was refused, or paid before. There is no middle any more.
      if (response.writableEnded || performance.now() > endMs) return
      await sleep(HELD_LOOK_MS)
    }
    this.#armed = false
    await this.#second?.kill()
    await processor.release()
  }
}
