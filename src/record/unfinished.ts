/** Records whose operation has durable steps, and is to be gone on with. */
import { common } from './common.ts'
import type { Failure, Kind, Retryable, Unknown } from './record.ts'

/**
 * Whether a claimant may run what is retryable. Durable steps belong to an operation, which goes on behind them. Any other work of the same
 * name, as another deploy may have it, would begin again from the start, and know nothing of them.
 */
export function mayRunAgain({ hasSteps }: Retryable, claimant: Kind): boolean {
  return hasSteps !== true || claimant === 'operation'
}

/** What a claimant is told that must not run it. The record itself stays as it is, for an operation to go on with. */
export function unfinished(record: Retryable): Unknown {
  return { ...common(record), state: 'unknown', failure: HAS_STEPS, lookAt: null, looks: 0 }
}

const HAS_STEPS: Failure = {
  code: 'operation_unfinished',
  message: 'Steps of an operation are durable under this key. Only the operation goes on with them.',
}
