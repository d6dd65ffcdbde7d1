import { LIMITS } from '../core/limits.ts'
import type { Observers } from '../observe/index.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import type { Worker } from '../onlyonce/worker.ts'
import type { ResumeEnd } from '../operation/run-operation.ts'
import { failureOf } from '../record/failure.ts'
import type { RecordId } from '../record/index.ts'
import type { Takable } from '../store/operations.ts'
import { checkTaker, TAKER_NAMES, type TakerOptions, takeEach, toldPlainly } from './take.ts'

/**
 * Finds out what became of operations in doubt: from what others have told first, then by `find`, as often as
 * `reconcileAfterMs` says. What happened is gone on with; what is still in doubt after the last look is parked.
 *
 * @example
 * const { done } = await reconciler(once).runOnce()
 */
export function reconciler<Tx>(once: Onlyonce<Tx>, options: TakerOptions = {}): Worker {
  const engine = engineOf(once)
  checkTaker('reconciler()', options, TAKER_NAMES)
  const { batchMax = LIMITS.workerBatchMax } = options
  const { leaseMs = LIMITS.leaseMs, inProgressMaxMs = LIMITS.inProgressMaxMs } = options
  return toldPlainly({
    name: 'reconciler',
    async runOnce() {
      await engine.start()
      const { catalog, store } = engine.durable
      engine.crashPoint('reconciler.find.before')
      const due = await store.due(catalog.all, batchMax)
      engine.crashPoint('reconciler.find.after')
      const resume = async (seen: Takable) => {
        const end = await engine.resume({ seen, looking: true, leaseMs, inProgressMaxMs })
        if (end !== null) tell(engine.observers, seen.id, end)
        return end !== null
      }
      return await takeEach(due, options, resume, ({ id }, error) =>
        tell(engine.observers, id, { why: 'lost', error }),
      )
    },
  })
}

function tell(observers: Observers, id: RecordId, end: NonNullable<ResumeEnd>): void {
  switch (end.why) {
    case 'completed':
      observers.emit({ signal: 'reconcile_resolved', id, state: 'completed' })
      break
    case 'doubt':
    case 'parked':
      observers.emit({ signal: 'reconcile_failed', id, failure: end.failure })
      break
    case 'lost':
    case 'failed':
    case 'invalid':
      observers.emit({ signal: 'reconcile_failed', id, failure: failureOf(end.error) })
      break
    case 'not_now':
    case 'busy':
    case 'conflict':
      break
    default:
      end satisfies never
  }
}
