import type { Onlyonce } from '../door.ts'
import { LIMITS } from '../limits.ts'
import { engineOf } from '../onlyonce.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'
import type { Worker } from '../worker.ts'
import { toldPlainly } from './take.ts'

export interface RecovererOptions {
  /** Records in one batch. */
  readonly batch_max?: number
  /** Records that are asked about at once. */
  readonly at_once?: number
}

const NAMES: OptionNames<RecovererOptions> = { batch_max: true, at_once: true }

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
  const { batch_max = LIMITS.worker_batch_max, at_once = LIMITS.worker_at_once } = options
  return toldPlainly({
    name: 'recoverer',
    async runOnce() {
      engine.refuseWhenClosing()
      await engine.start()
      return await engine.upkeep.recovery.runOnce({ batch_max, at_once })
    },
  })
}
