import type { Queryable } from 'onlyonce'
import type { Gateway, Movement } from '../gateway/index.ts'
import { LIMITS } from '../limits.ts'
import type { OwnMovement } from './compare.ts'
import { OWN_PAYMENTS, OWN_REFUNDS } from './sql.ts'

export interface OwnRange {
  readonly from: Date
  readonly to: Date
  /** By the database's clock: when the processor's books began to be read. What was changed since is not known. */
  readonly theirReadingBegan: string
}

/**
 * What our own books say was moved through a processor, page by page. Read it behind the processor's: then what is in one
 * of them only, because it happened in between, is seen to be so.
 *
 * @example
 * for await (const movement of ownMovements(pool, gateway, { from, to, theirReadingBegan })) ours.push(movement)
 */
export async function* ownMovements(
  pool: Queryable,
  gateway: Pick<Gateway, 'name' | 'mode'>,
  range: OwnRange,
): AsyncGenerator<OwnMovement> {
  yield* pagesOf(pool, 'payment', OWN_PAYMENTS, gateway, range)
  yield* pagesOf(pool, 'refund', OWN_REFUNDS, gateway, range)
}

async function* pagesOf(
  pool: Queryable,
  kind: Movement['kind'],
  text: string,
  { name, mode }: Pick<Gateway, 'name' | 'mode'>,
  { from, to, theirReadingBegan }: OwnRange,
): AsyncGenerator<OwnMovement> {
  // No id is empty, so what was made in the very first moment is behind this.
  let [place, id] = [from.toISOString(), '']
  for (;;) {
    const values = [name, mode, theirReadingBegan, to.toISOString(), place, id, LIMITS.reconcilePageMax]
    const { rows } = await pool.query(text, values)
    for (const row of rows) yield movementOf(kind, row)
    if (rows.length < LIMITS.reconcilePageMax) return
    ;({ place, id } = rows.at(-1)!)
  }
}

interface Row extends Omit<OwnMovement, 'kind' | 'unknown_since'> {
  readonly unknown_since: string
}

function movementOf(kind: Movement['kind'], row: object): OwnMovement {
  const {
    account,
    id,
    gateway_id: gatewayId,
    amount,
    currency,
    moved,
    unknown_since: unknownSince,
    at,
  } = row as Row
  const movement = { account, kind, id, gateway_id: gatewayId, amount, currency, moved, at }
  return moved === null ? { ...movement, unknown_since: unknownSince } : movement
}
