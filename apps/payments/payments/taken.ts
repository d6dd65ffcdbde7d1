/** A charge at the processor that belongs to another payment or refund of ours already: no attempt can settle a second one with it. */
import { OnlyonceError, type RecordId } from 'onlyonce'
import type { Operator } from 'onlyonce/operator'
import type pg from 'pg'
import { inTransaction } from '../database/in-transaction.ts'
import { GATEWAY_ID_OWNERS } from './sql-unsettled.ts'

/** The failure that the record shows. */
export const GATEWAY_ID_TAKEN = 'gateway_id_taken'

/** Whether the unique indexes have refused it. They decide, so two at once cannot both have the id. */
export function isTaken(error: unknown): boolean {
  const { code, constraint } = error as { readonly code?: unknown; readonly constraint?: unknown }
  return code === '23505' && ['payments_gateway_id', 'refunds_gateway_id'].includes(`${constraint}`)
}

interface Owner {
  readonly owner: string
  readonly account: string
}

/** Which payment or refund has it, of any account; null where none has. */
export async function ownerOf(
  pool: Pick<pg.Pool, 'query'>,
  { account, operation }: Pick<RecordId, 'account' | 'operation'>,
  gatewayId: string,
): Promise<Owner | null> {
  const { rows } = await pool.query<Owner & { operation: string }>(GATEWAY_ID_OWNERS, [account, gatewayId])
  return rows.find((row) => row.operation === operation) ?? null
}

const tell = (gatewayId: string, { owner, account }: Owner) =>
  `The processor's ${gatewayId} belongs to ${owner} of ${account} already.`

/** Its message is for operators alone: the other one may be of another account. */
export class GatewayIdTaken extends Error {
  readonly code = GATEWAY_ID_TAKEN

  constructor(gatewayId: string, owner: Owner | null) {
    super(owner === null ? `Another one has the processor's ${gatewayId}.` : tell(gatewayId, owner))
  }
}

/** For the step that settles: says in the record why it cannot. */
export function tellTaken(
  pool: Pick<pg.Pool, 'query'>,
  of: Pick<RecordId, 'account' | 'operation'>,
  gatewayId: string | null,
): (error: unknown) => Promise<never> {
  return async (error) => {
    if (!isTaken(error) || gatewayId === null) throw error
    const owner = await ownerOf(pool, of, gatewayId).catch(() => null)
    throw new GatewayIdTaken(gatewayId, owner)
  }
}

/**
 * Parks a record in doubt that cannot be settled because its charge is another one's. A worker would try it in vain until its last look.
 * The audit names the other one, also where that worker has parked the record by itself.
 */
export async function parkTaken(desk: Operator, pool: pg.Pool, record: RecordId, by: string): Promise<void> {
  const { state, record: seen, audit } = await desk.show(record)
  if (seen?.failure?.code !== GATEWAY_ID_TAKEN) return
  const gatewayId = /processor's (\w+)/.exec(seen.failure.message)?.[1] ?? ''
  const owner = await ownerOf(pool, record, gatewayId)
  // It is free again: the next look settles it.
  if (owner === null) return
  const why = `${tell(gatewayId, owner)} Find out whose it is.`
  const signed = { by, why, fence: seen.fence }
  if (state === 'unknown') await desk.park(record, signed).catch(unlessTakenOver)
  else if (state === 'parked' && !audit.some((entry) => entry.why === why))
    await inTransaction(pool, async (tx) => {
      await desk.unpark(record, { ...signed, tx })
      await desk.park(record, { ...signed, tx })
    }).catch(unlessTakenOver)
}

/** A worker or a request works on the record at this moment. The next run looks again. */
function unlessTakenOver(error: unknown): void {
  const passing = error instanceof OnlyonceError && ['record_changed', 'not_resolvable'].includes(error.code)
  if (!passing) throw error
}
