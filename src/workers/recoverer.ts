import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import type { Worker } from '../onlyonce/worker.ts'
import { toldPlainly } from './take.ts'

export interface RecovererOptions {
  /**
   * Records in one batch.
   *
   * @default 100
   */
  readonly batchMax?: number
  /**
   * Records that are asked about at once.
   *
   * @default 8
   */
  readonly atOnce?: number
}

const NAMES: OptionNames<RecovererOptions> = { batchMax: true, atOnce: true }

/**
 * Looks after handlers whose owner gave no outcome: asks the `recover` of their operation, and parks what cannot be found out.
 * The background loop of every process does the same in small batches.
 *
 * @example
 * const { done } = await recoverer(once).runOnce()
 */
export function recoverer<Tx>(once: Onlyonce<Tx>, options: RecovererOptions = {}): Worker {
  const engine = engineOf(once)
  refuseUnknown('recoverer()', options, NAMES)
  const { batchMax = LIMITS.workerBatchMax, atOnce = LIMITS.workerAtOnce } = options
  return toldPlainly({
    name: 'recoverer',
    async runOnce() {
      engine.refuseWhenClosing()
      await engine.start()
      return await engine.upkeep.recovery.runOnce({ batchMax, atOnce })
    },
  })
}
