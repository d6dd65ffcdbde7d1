/** What a person could find at the processor of a request that is in doubt here: made there, behind the back of the service. */
import type { CallContext, RecordId } from 'onlyonce'
import { derivedKey } from 'onlyonce/keys'
import type { Gateway } from '../gateway/index.ts'
import type { TestService } from './service.ts'

/** As the call of the request would have been made, whose answer was lost. */
const contextOf = ({ account, operation, key }: RecordId, step: string): CallContext => ({
  key: derivedKey({ account, operation, key, step }),
  signal: new AbortController().signal,
})

/** Carries a payment out at the processor that the service only has a row of. Its id there. */
export async function chargeOf(
  gateway: Gateway,
  { service: { pool } }: TestService,
  record: RecordId,
): Promise<string> {
  const { account, key } = record
  const { rows } = await pool.query(
    `SELECT account, id AS payment, amount::float8, currency, payment_method, capture_method AS capture, reference
     FROM payments.payments WHERE account = $1 AND idempotency_key = $2`,
    [account, key],
  )
  return (await gateway.authorize(rows[0], contextOf(record, 'authorized'))).gateway_id!
}

/** The same for a refund. */
export async function refundOf(
  gateway: Gateway,
  { service: { pool } }: TestService,
  record: RecordId,
): Promise<string> {
  const { account, key } = record
  const { rows } = await pool.query(
    `SELECT r.account, r.id AS refund, r.amount::float8, p.currency, p.gateway_id, r.reason
     FROM payments.refunds r JOIN payments.payments p ON p.account = r.account AND p.id = r.payment
     WHERE r.account = $1 AND r.idempotency_key = $2`,
    [account, key],
  )
  return (await gateway.refund(rows[0], contextOf(record, 'refunded'))).gateway_id!
}

/** The same for a capture. */
export async function captureOf(
  gateway: Gateway,
  { service: { pool } }: TestService,
  record: RecordId,
): Promise<void> {
  const { account, key } = record
  const { rows } = await pool.query(
    `SELECT c.id AS capture, c.amount::float8, c.final, p.currency, p.gateway_id
     FROM payments.captures c JOIN payments.payments p ON p.account = c.account AND p.id = c.payment
     WHERE c.account = $1 AND c.idempotency_key = $2`,
    [account, key],
  )
  await gateway.capture(rows[0], contextOf(record, 'captured'))
}
