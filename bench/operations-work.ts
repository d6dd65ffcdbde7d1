import { randomUUID } from 'node:crypto'
import type { GatewayClient } from '../test/gateway/client.ts'
import type { ChargeResult } from '../test/gateway/wire.ts'

/** What every side has a transaction for. */
export interface Queries {
  query(text: string, values: unknown[]): Promise<unknown>
}

export interface Payment {
  readonly id: string
  readonly amount: number
}

/** One side of the comparison, with whatever it has to open before and close after. */
export interface OperationsSide {
  /** Writes, calls, writes: one whole payment under a key that nobody has used. */
  run(key: string): Promise<unknown>
  close(): Promise<void>
}

export interface OperationsWorld {
  readonly url: string
  readonly gateway: GatewayClient
  readonly connections: number
}

export const TABLES = `
CREATE TABLE payments (id uuid PRIMARY KEY, amount bigint NOT NULL, status text NOT NULL, charge text);
CREATE TABLE ledger (id uuid PRIMARY KEY, payment uuid NOT NULL, amount bigint NOT NULL)`

export function newPayment(): Payment {
  return { id: randomUUID(), amount: 4200 }
}

/** The first write. The same statements on every side, and the same call between them. */
export async function insertPayment(tx: Queries, { id, amount }: Payment): Promise<void> {
  await tx.query('INSERT INTO payments (id, amount, status) VALUES ($1, $2, $3)', [id, amount, 'started'])
}

export function charge(
  gateway: GatewayClient,
  { id, amount }: Payment,
  options: { readonly key: string; readonly signal?: AbortSignal },
): Promise<ChargeResult> {
  return gateway.charge({ amount, reference: id }, options)
}

/** The second write. */
export async function settlePayment(
  tx: Queries,
  { id, amount }: Payment,
  { status, id: chargeId }: ChargeResult,
): Promise<{ id: string; charge: string }> {
  await tx.query('UPDATE payments SET status = $2, charge = $3 WHERE id = $1', [id, status, chargeId])
  await tx.query('INSERT INTO ledger (id, payment, amount) VALUES ($1, $2, $3)', [randomUUID(), id, amount])
  return { id, charge: chargeId }
}
