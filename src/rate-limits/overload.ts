import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { Pool } from 'pg'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { Deadline } from '../core/retry.ts'
import type { Admission } from '../http/index.ts'
import { queueOf } from '../store/postgres/queue.ts'
import { refuse, whole } from './options.ts'
import { QueueWait } from './queue-wait.ts'

export interface OverloadOptions {
  /** More requests at once, each that asks included, are too many. */
  readonly inFlightMax: number
  /** An event loop that is later than this has too much to do. */
  readonly lagMaxMs: number
  /**
   * The pool that requests wait for. A request that came now and would wait for a connection for longer than `queueMaxMs` is too much.
   * All who use the pool count, the store of `onlyonce` included.
   *
   * @default none: no queue is looked at
   */
  readonly pool?: Pool
  /**
   * Default: 200 ms. A request mostly waits for several connections, one after the other.
   *
   * @default 200
   */
  readonly queueMaxMs?: number
  /**
   * Once it sheds, it goes on until all are below this part of their bounds. Default: 0.7.
   *
   * @default 0.7
   */
  readonly calm?: number
  /**
   * What those who are refused are told to wait, at least; where the queue is longer, as long as it takes.
   *
   * @default 1_000
   */
  readonly retryAfterMs?: number
}

const NAMES: OptionNames<OverloadOptions> = {
  inFlightMax: true,
  lagMaxMs: true,
  pool: true,
  queueMaxMs: true,
  calm: true,
  retryAfterMs: true,
}

/** Refuses new work before everything becomes slow. */
export interface Overload {
  readonly inFlight: number
  /** How late the event loop was of late, on average. */
  readonly lagMs: number
  /** How long a request that came now would wait for a connection. Zero without a pool. */
  readonly queueMs: number
  /** Whether new work is refused now. */
  readonly shedding: boolean
  /** Counts a request; call what it gives back when the request is over. A second call of that changes nothing. */
  enter(): () => void
  /** Counts a request as long as the function runs. */
  run<T>(work: () => Promise<T>): Promise<T>
  /** What `admit` of a route answers. Asks no server and waits for nothing. */
  admit(): Admission
  /** Ends the looking; it keeps no process alive by itself. */
  stop(): void
}

/**
 * Sheds new work early: a request that is refused at once costs little, and one that waits until its client has given
 * up costs everything. As `admit` of a route it leaves replays alone, which are cheap and end the retries.
 *
 * @example
 * const load = overload({ inFlightMax: 500, lagMaxMs: 200, pool })
 * const admit: Admit = () => load.admit()
 */
export function overload(options: OverloadOptions): Overload {
  refuseUnknown('overload()', options, NAMES)
  const { inFlightMax, lagMaxMs, calm = 0.7, retryAfterMs = LIMITS.retryAfterMs } = options
  const { pool, queueMaxMs = LIMITS.overloadQueueMaxMs } = options
  whole('inFlightMax', inFlightMax, Number.MAX_SAFE_INTEGER)
  whole('lagMaxMs', lagMaxMs, LIMITS.timerMaxMs)
  whole('queueMaxMs', queueMaxMs, LIMITS.timerMaxMs)
  whole('retryAfterMs', retryAfterMs, LIMITS.timerMaxMs)
  if (pool !== undefined && typeof pool.on !== 'function') refuse('pool is a pool of pg.')
  if (!(calm > 0 && calm <= 1)) refuse('calm is a number above 0, at most 1.')
  const opened = new Deadline(0)
  const queue = pool === undefined ? null : new QueueWait(queueOf(pool), opened.elapsedMs)
  const lag = new Lag(() => queue?.look(opened.elapsedMs))
  const queueMs = () => queue?.waitMs(opened.elapsedMs) ?? 0
  let inFlight = 0
  let shedding = false
  // Without two bounds it would flap: each request that is let go makes room for one that is then too many again.
  const look = (): boolean => {
    const part = shedding ? calm : 1
    shedding = inFlight > inFlightMax * part || lag.meanMs > lagMaxMs * part || queueMs() > queueMaxMs * part
    return shedding
  }
  const enter = () => {
    let inside = true
    inFlight += 1
    return () => {
      if (inside) inFlight -= 1
      inside = false
    }
  }
  const refusal = (): Admission => {
    const waitMs = Math.min(queueMs(), LIMITS.overloadRetryAfterMaxMs)
    const toldMs = Math.max(retryAfterMs, Math.ceil(waitMs))
    return { admit: false, code: 'overloaded', status: 503, retryAfterMs: toldMs, headers: SHED }
  }
  return {
    get inFlight() {
      return inFlight
    },
    get lagMs() {
      return lag.meanMs
    },
    get queueMs() {
      return queueMs()
    },
    get shedding() {
      return look()
    },
    enter,
    async run(work) {
      const leave = enter()
      try {
        return await work()
      } finally {
        leave()
      }
    },
    admit: () => (look() ? refusal() : ADMITTED),
    stop: () => lag.stop(),
  }
}

const ADMITTED: Admission = { admit: true }
const SHED = { 'Stripe-Should-Retry': 'true' }

/** How late the event loop is: the mean of its delays since the last look. */
class Lag {
  meanMs = 0
  readonly #histogram: IntervalHistogram
  readonly #timer: NodeJS.Timeout
  readonly #beside: () => void
  #count = 0
  #sumMs = 0

  /** `beside` is called at every look. */
  constructor(beside: () => void) {
    this.#beside = beside
    this.#histogram = monitorEventLoopDelay({ resolution: LIMITS.overloadSampleEveryMs })
    this.#histogram.enable()
    this.#timer = setInterval(() => this.#look(), LIMITS.overloadLookEveryMs).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#histogram.disable()
    this.meanMs = 0
  }

  /**
   * What is measured is the time from one sample to the next, the pause that was asked for included. Never reset: the first
   * sample after that is lost, and a loop that is late has few.
   */
  #look(): void {
    this.#beside()
    const { count, mean } = this.#histogram
    const newOnes = count - this.#count
    if (newOnes === 0) return
    const sumMs = (mean * count) / 1e6
    this.meanMs = Math.max(0, (sumMs - this.#sumMs) / newOnes - LIMITS.overloadSampleEveryMs)
    this.#count = count
    this.#sumMs = sumMs
  }
}
