/** What a person could find at the processor of a request that is in doubt here: made there, behind the back of the service. */
import { randomUUID } from 'node:crypto'
import type { CallContext, RecordId } from 'onlyonce'
import type { Gateway } from '../gateway/index.ts'
import type { TestService } from './service.ts'

const context = () =>
  ({ key: `by-hand-${randomUUID()}`, signal: new AbortController().signal }) as CallContext

/** Carries a payment out at the processor that the service only has a row of. Its id there. */
export async function chargeOf(
  gateway: Gateway,
  { service: { pool } }: TestService,
  { account, key }: RecordId,
  changed: object = {},
): Promise<string> {
  const { rows } = await pool.query(
    `SELECT account, id AS payment, amount::float8, currency, payment_method, capture_method AS capture, reference
     FROM payments.payments WHERE account = $1 AND idempotency_key = $2`,
    [account, key],
  )
  return (await gateway.authorize({ ...rows[0], ...changed }, context())).gateway_id!
}

/** The same for a refund. */
export async function refundOf(
  gateway: Gateway,
  { service: { pool } }: TestService,
  { account, key }: RecordId,
  changed: object = {},
): Promise<string> {
  const { rows } = await pool.query(
    `SELECT r.account, r.id AS refund, r.amount::float8, p.currency, p.gateway_id, r.reason
     FROM payments.refunds r JOIN payments.payments p ON p.account = r.account AND p.id = r.payment
     WHERE r.account = $1 AND r.idempotency_key = $2`,
    [account, key],
  )
  return (await gateway.refund({ ...rows[0], ...changed }, context())).gateway_id!
}
