import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import { positive } from '../onlyonce/requests.ts'
import type { Ran, Worker } from '../onlyonce/worker.ts'
import type { Reaped, ReapRequest } from '../store/contract.ts'
import { faultBehind } from '../store/postgres/classify.ts'
import { toldPlainly } from './take.ts'

export interface ReaperOptions {
  /**
   * `delete` removes the record and the history of its attempts. `expire` keeps the row, so that it can be told later that
   * there was one, and clears its reply, its input and its errors; the table then grows for ever.
   */
  readonly mode: 'delete' | 'expire'
  /**
   * Records in one batch; less after a batch that was too slow.
   *
   * @default 1_000
   */
  readonly batchMax?: number
  /**
   * How often it looks once nothing is left to remove.
   *
   * @default 60_000
   */
  readonly everyMs?: number
}

const MODES: readonly string[] = ['delete', 'expire'] satisfies ReaperOptions['mode'][]
const NAMES: OptionNames<ReaperOptions> = { mode: true, batchMax: true, everyMs: true }

/**
 * A worker that removes finished records after their retention. It never touches one that is in progress, unknown or
 * parked, and none that has changed within the last minutes, also with a shorter retention. Evidence goes 90 days after it was
 * told, unless a record still waits for it.
 *
 * @example
 * const workers = startWorkers(once, { workers: [reaper(once, { mode: 'expire' })] })
 */
export function reaper<Tx>(once: Onlyonce<Tx>, options: ReaperOptions): Worker {
  const engine = engineOf(once)
  const { mode, batchMax, everyMs } = checkOptions(options)
  const batch = new BatchSize(batchMax)
  const keptMinMs = Math.max(LIMITS.finishedKeptMinMs, engine.store.doubtMaxMs)
  return toldPlainly({
    name: 'reaper',
    everyMs,
    async runOnce(): Promise<Ran> {
      engine.refuseWhenClosing()
      await engine.start()
      const request = { mode, batchMax: batch.now, keptMinMs }
      engine.crashPoint('reaper.reap.before')
      const reaped = await batch.fit(() => engine.store.reap(request))
      engine.crashPoint('reaper.reap.after')
      if (reaped === null) return { done: 0, more: true }
      const { count, more } = reaped
      if (count > 0) engine.observers.emit({ signal: 'ttl_pruned', count })
      return { done: count, more }
    },
  })
}

/** As many as the database takes in time: half after a batch that was too slow, and then a little more each time. */
class BatchSize {
  readonly #max: number
  readonly #min: number
  #now: number

  constructor(max: number) {
    this.#max = max
    this.#min = Math.min(LIMITS.reapBatchMin, max)
    this.#now = max
  }

  get now(): number {
    return this.#now
  }

  /** Null where it has to be tried with less. Where that is not possible any more, the error stands. */
  async fit(reap: () => Promise<Reaped>): Promise<Reaped | null> {
    try {
      const reaped = await reap()
      this.#now = Math.min(this.#max, this.#now + Math.ceil(this.#max / GROWTH_STEPS))
      return reaped
    } catch (error) {
      const fault = faultBehind(error)
      const smaller = Math.max(this.#min, Math.floor(this.#now / 2))
      if ((fault !== 'too_slow' && fault !== 'lock_wait') || smaller === this.#now) throw error
      this.#now = smaller
      return null
    }
  }
}

/** From nothing to the whole batch in so many batches that went well. */
const GROWTH_STEPS = 20

function checkOptions(options: ReaperOptions): Pick<ReapRequest, 'mode' | 'batchMax'> & { everyMs: number } {
  refuseUnknown('reaper()', options, NAMES)
  const { mode, batchMax = LIMITS.reapBatchMax, everyMs = LIMITS.reapEveryMs } = options
  if (!MODES.includes(mode)) refuse(`mode must be one of ${MODES.join(', ')}.`)
  if (!Number.isSafeInteger(batchMax) || batchMax < 1 || batchMax > LIMITS.reapBatchMax) {
    refuse(`batchMax must be a whole number from 1 to ${LIMITS.reapBatchMax}.`)
  }
  return { mode, batchMax, everyMs: positive('everyMs', everyMs) }
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
