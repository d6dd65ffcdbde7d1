import { randomUUID } from 'node:crypto'
import { operation, reply } from '../../src/index.ts'
import type { Gateway } from './gateway.ts'

export const TABLES = `CREATE TABLE IF NOT EXISTS payments (
  customer text NOT NULL,
  id       uuid NOT NULL,
  amount   bigint NOT NULL,
  status   text NOT NULL,
  charge   uuid,
  PRIMARY KEY (customer, id)
)`

export interface PaymentInput {
  /** In minor units, for example cents. */
  readonly amount: number
}

/** Checked before any key is claimed. Express answers with the status of what is thrown. */
export function readPayment({ body }: { readonly body: unknown }): PaymentInput {
  const { amount } = (body ?? {}) as { amount?: unknown }
  if (!Number.isSafeInteger(amount) || (amount as number) < 1) {
    throw Object.assign(new Error('amount must be a positive whole number.'), { status: 400 })
  }
  return { amount: amount as number }
}

/** A write, a call, a write. Whoever comes after a crash goes on behind the last of them that is durable. */
export const createPaymentWith = (gateway: Gateway) =>
  operation('payments.create', async (op, { amount }: PaymentInput) => {
    const payment = await op.transaction('payment_created', async (tx) => {
      const id = randomUUID()
      const values = [op.account, id, amount, 'pending']
      await tx.query('INSERT INTO payments (customer, id, amount, status) VALUES ($1, $2, $3, $4)', values)
      return { id }
    })
    const charge = await op.call('charged', {
      call: ({ key }) => gateway.charge(amount, key),
      find: ({ key }) => gateway.find(key),
      timeoutMs: 2_000,
    })
    // The payment, its record and this reply are one commit. A decline is a result, and is replayed like any other.
    return op.transaction('settled', async (tx) => {
      const values = [op.account, payment.id, charge.status, charge.id]
      await tx.query('UPDATE payments SET status = $3, charge = $4 WHERE customer = $1 AND id = $2', values)
      const body = { id: payment.id, amount, status: charge.status }
      return charge.status === 'captured' ? reply(201, body) : reply(402, body)
    })
  })
