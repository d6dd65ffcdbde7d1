import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { Pool } from 'pg'
import type { Admission } from '../boundary/index.ts'
import { LIMITS } from '../limits.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'
import { Deadline } from '../retry.ts'
import { queueOf } from '../store/postgres/queue.ts'
import { refuse, whole } from './options.ts'
import { QueueWait } from './queue-wait.ts'

export interface OverloadOptions {
  /** More requests at once, each that asks included, are too many. */
  readonly in_flight_max: number
  /** An event loop that is later than this has too much to do. */
  readonly lag_max_ms: number
  /**
   * The pool that requests wait for. A request that came now and would wait for a connection for longer than `queue_max_ms` is too much.
   * All who use the pool count, the store of `onlyonce` included.
   */
  readonly pool?: Pool
  /** Default: 200 ms. A request mostly waits for several connections, one after the other. */
  readonly queue_max_ms?: number
  /** Once it sheds, it goes on until all are below this part of their bounds. Default: 0.7. */
  readonly calm?: number
  /** What those who are refused are told to wait, at least; where the queue is longer, as long as it takes. Default: a second. */
  readonly retry_after_ms?: number
}

const NAMES: OptionNames<OverloadOptions> = {
  in_flight_max: true,
  lag_max_ms: true,
  pool: true,
  queue_max_ms: true,
  calm: true,
  retry_after_ms: true,
}

/** Refuses new work before everything becomes slow. */
export interface Overload {
  readonly in_flight: number
  /** How late the event loop was of late, on average. */
  readonly lag_ms: number
  /** How long a request that came now would wait for a connection. Zero without a pool. */
  readonly queue_ms: number
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
 * const load = overload({ in_flight_max: 500, lag_max_ms: 200, pool })
 * idempotent({ account, admit: () => load.admit() })
 */
export function overload(options: OverloadOptions): Overload {
  refuseUnknown('overload()', options, NAMES)
  const { in_flight_max, lag_max_ms, calm = 0.7, retry_after_ms = LIMITS.retry_after_ms } = options
  const { pool, queue_max_ms = LIMITS.overload_queue_max_ms } = options
  whole('in_flight_max', in_flight_max, Number.MAX_SAFE_INTEGER)
  whole('lag_max_ms', lag_max_ms, LIMITS.timer_max_ms)
  whole('queue_max_ms', queue_max_ms, LIMITS.timer_max_ms)
  whole('retry_after_ms', retry_after_ms, LIMITS.timer_max_ms)
  if (pool !== undefined && typeof pool.on !== 'function') refuse('pool is a pool of pg.')
  if (!(calm > 0 && calm <= 1)) refuse('calm is a number above 0, at most 1.')
  const opened = new Deadline(0)
  const queue = pool === undefined ? null : new QueueWait(queueOf(pool), opened.elapsed_ms)
  const lag = new Lag(() => queue?.look(opened.elapsed_ms))
  const queueMs = () => queue?.waitMs(opened.elapsed_ms) ?? 0
  let in_flight = 0
  let shedding = false
  // Without two bounds it would flap: each request that is let go makes room for one that is then too many again.
  const look = (): boolean => {
    const part = shedding ? calm : 1
    shedding =
      in_flight > in_flight_max * part || lag.mean_ms > lag_max_ms * part || queueMs() > queue_max_ms * part
    return shedding
  }
  const enter = () => {
    let inside = true
    in_flight += 1
    return () => {
      if (inside) in_flight -= 1
      inside = false
    }
  }
  const refusal = (): Admission => {
    const wait_ms = Math.min(queueMs(), LIMITS.overload_retry_after_max_ms)
    const told_ms = Math.max(retry_after_ms, Math.ceil(wait_ms))
    return { admit: false, code: 'overloaded', status: 503, retry_after_ms: told_ms, headers: SHED }
  }
  return {
    get in_flight() {
      return in_flight
    },
    get lag_ms() {
      return lag.mean_ms
    },
    get queue_ms() {
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
  mean_ms = 0
  readonly #histogram: IntervalHistogram
  readonly #timer: NodeJS.Timeout
  readonly #beside: () => void
  #count = 0
  #sum_ms = 0

  /** `beside` is called at every look. */
  constructor(beside: () => void) {
    this.#beside = beside
    this.#histogram = monitorEventLoopDelay({ resolution: LIMITS.overload_sample_every_ms })
    this.#histogram.enable()
    this.#timer = setInterval(() => this.#look(), LIMITS.overload_look_every_ms).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#histogram.disable()
    this.mean_ms = 0
  }

  /**
   * What is measured is the time from one sample to the next, the pause that was asked for included. Never reset: the first
   * sample after that is lost, and a loop that is late has few.
   */
  #look(): void {
    this.#beside()
    const { count, mean } = this.#histogram
    const new_ones = count - this.#count
    if (new_ones === 0) return
    const sum_ms = (mean * count) / 1e6
    this.mean_ms = Math.max(0, (sum_ms - this.#sum_ms) / new_ones - LIMITS.overload_sample_every_ms)
    this.#count = count
    this.#sum_ms = sum_ms
  }
}
