import type { Op } from 'onlyonce'
import type { Operator } from 'onlyonce/operator'
import type pg from 'pg'
import type { Attempt } from '../tries.ts'
import type { Gateways } from './gateways.ts'

/** What the operations of payments work with. */
export interface PaymentDoors {
  readonly gateways: Gateways
  /** Ends requests that were not executed and hold what others need. */
  readonly desk: Operator
  /** For a look that no step makes. */
  readonly pool: Pick<pg.Pool, 'query'>
  /** Told that an attempt begins: what it has counted against limits is given back where it need not count. */
  readonly begin: (write: Pick<Op, 'account' | 'operation' | 'key'>) => Attempt
  /** How long keys replay. */
  readonly retentionMs: number
}
