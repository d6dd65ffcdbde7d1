import type { Operator } from 'onlyonce'
import type { Gateways } from './gateways.ts'

/** What the operations of payments work with. */
export interface PaymentDoors {
  readonly gateways: Gateways
  /** Ends requests that were not executed and hold what others need. */
  readonly desk: Operator
  /** How long keys replay. */
  readonly retention_ms: number
}
