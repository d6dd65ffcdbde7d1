import type { Op, Operator } from 'onlyonce'
import type { Gateways } from './gateways.ts'

/** What the operations of payments work with. */
export interface PaymentDoors {
  readonly gateways: Gateways
  /** Ends requests that were not executed and hold what others need. */
  readonly desk: Operator
  /** Told of a payment that is refused before its processor is asked: it charges no card. */
  readonly cameToNothing: (payment: Pick<Op, 'account' | 'operation' | 'key'>) => Promise<void>
  /** How long keys replay. */
  readonly retention_ms: number
}
