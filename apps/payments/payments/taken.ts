/** A charge at the processor that belongs to another payment or refund of ours already: no attempt can settle a second one with it. */
import { OnlyonceError, type Operator, type RecordId } from 'onlyonce'
import type pg from 'pg'
import { GATEWAY_ID_OWNERS } from './sql-unsettled.ts'

/** The failure that the record shows. */
export const GATEWAY_ID_TAKEN = 'gateway_id_taken'

/** Whether the unique indexes have refused it. They decide, so two at once cannot both have the id. */
export function isTaken(error: unknown): boolean {
  const { code, constraint } = error as { readonly code?: unknown; readonly constraint?: unknown }
  return code === '23505' && ['payments_gateway_id', 'refunds_gateway_id'].includes(`${constraint}`)
}

const BEGINNING = 'Another payment or refund has what the processor calls '

/** Only operators are told which payment or refund has it: that one may be of another account. */
class GatewayIdTaken extends Error {
  readonly code = GATEWAY_ID_TAKEN

  constructor(gateway_id: string | null) {
    super(`${BEGINNING}${gateway_id}.`)
  }
}

/** For the step that settles: says in the record why it cannot. */
export function tellTaken(gateway_id: string | null): (error: unknown) => never {
  return (error) => {
    throw isTaken(error) ? new GatewayIdTaken(gateway_id) : error
  }
}

/**
 * Parks a record in doubt that cannot be settled because its charge is another one's. The audit names that one. A worker would try it
 * in vain until its last look.
 */
export async function parkTaken(desk: Operator, pool: pg.Pool, record: RecordId, by: string): Promise<void> {
  const { state, record: seen } = await desk.show(record)
  if (state !== 'unknown' || seen?.failure?.code !== GATEWAY_ID_TAKEN) return
  const gateway_id = seen.failure.message.slice(BEGINNING.length, -1)
  const { rows } = await pool.query(GATEWAY_ID_OWNERS, [record.account, gateway_id])
  const owners = rows.filter(({ operation }) => operation === record.operation)
  // It is free again: the next look settles it.
  if (owners.length === 0) return
  const [{ owner, account }] = owners
  const why = `The processor's ${gateway_id} belongs to ${owner} of ${account} already. Find out whose it is.`
  await desk.park(record, { by, why, fence: seen.fence }).catch(unlessTakenOver)
}

/** A worker or a request works on the record at this moment. The next run looks again. */
function unlessTakenOver(error: unknown): void {
  const passing = error instanceof OnlyonceError && ['record_changed', 'not_resolvable'].includes(error.code)
  if (!passing) throw error
}
