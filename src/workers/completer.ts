import { LIMITS } from '../core/limits.ts'
import type { OptionNames } from '../core/options.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import type { Worker } from '../onlyonce/worker.ts'
import { failureOf } from '../record/failure.ts'
import type { Takable } from '../store/operations.ts'
import { checkTaker, TAKER_NAMES, type TakerOptions, takeEach, toldPlainly } from './take.ts'

export interface CompleterOptions extends TakerOptions {
  /**
   * How long after the end of its lease an operation counts as abandoned. Until then its client may come back.
   *
   * @default 30_000
   */
  readonly graceMs?: number
}

const NAMES: OptionNames<CompleterOptions> = { ...TAKER_NAMES, graceMs: true }

/**
 * Finishes operations whose owner is gone and whose client never came back. After the deadline of the request it
 * begins no new call; it looks, and finishes what it finds.
 *
 * @example
 * const { done } = await completer(once).runOnce()
 */
export function completer<Tx>(once: Onlyonce<Tx>, options: CompleterOptions = {}): Worker {
  const engine = engineOf(once)
  checkTaker('completer()', options, NAMES)
  const { graceMs = LIMITS.graceMs, batchMax = LIMITS.workerBatchMax } = options
  const { leaseMs = LIMITS.leaseMs, inProgressMaxMs = LIMITS.inProgressMaxMs } = options
  const tellFailed = ({ id }: Takable, error: unknown) =>
    engine.observers.emit({ signal: 'reconcile_failed', id, failure: failureOf(error) })
  return toldPlainly({
    name: 'completer',
    async runOnce() {
      await engine.start()
      const { catalog, store } = engine.durable
      engine.crashPoint('completer.find.before')
      const abandoned = await store.abandoned(catalog.all, graceMs, batchMax)
      engine.crashPoint('completer.find.after')
      const resume = async (seen: Takable) => {
        const end = await engine.resume({ seen, looking: false, leaseMs, inProgressMaxMs })
        if (end === null) return false
        engine.observers.emit({ signal: 'zombie_key', protection: 'operation', id: seen.id })
        if (end.why === 'completed')
          engine.observers.emit({ signal: 'reconcile_resolved', id: seen.id, state: 'completed' })
        // Such as a lease that is too short for a call: nothing else would say so.
        if (end.why === 'failed') tellFailed(seen, end.error)
        return true
      }
      return await takeEach(abandoned, options, resume, tellFailed)
    },
  })
}
