/** Payments at the gateway, as tests and their programs know them alike, and what can be seen of their records. */
import type pg from 'pg'
import {
  type CallContext,
  type Found,
  type Op,
  type Operation,
  operation,
  type Queryable,
  reply,
} from '../../src/index.ts'
import type { GatewayClient } from '../gateway/client.ts'
import type { ChargeResult } from '../gateway/wire.ts'
import { waitUntil } from '../setup/wait.ts'

export const ACCOUNT = 'acct_1'
export const PAY = 'payments.create'
export const OLD_SECRET = 'a secret that all processes share.'

export interface Payment {
  readonly amount: number
}

export const PAYMENT: Payment = { amount: 500 }

export async function createEffects(pool: pg.Pool): Promise<void> {
  await pool.query('CREATE TABLE effects (note text PRIMARY KEY)')
}

/** Twice is an error. */
export async function note(tx: Queryable, text: string): Promise<void> {
  await tx.query('INSERT INTO effects (note) VALUES ($1)', [text])
}

/** Its reference is the key of the operation, so that the journal tells whose it is. */
export function charging(
  gateway: GatewayClient,
  op: Op,
  { amount }: Payment,
): {
  call(context: CallContext): Promise<ChargeResult>
  find(context: CallContext): Promise<Found<ChargeResult>>
} {
  return {
    call: ({ key, signal }) => gateway.charge({ amount, reference: op.key }, { key, signal }),
    find: async ({ key, signal }) => (await gateway.findByKey(key, { signal })) as Found<ChargeResult>,
  }
}

/** Write, call, write. */
export function payAt(
  gateway: GatewayClient,
  options: { readonly idempotent?: boolean; readonly visibleWithinMs?: number } = {},
): Operation<Payment, { charge: string }> {
  return operation(PAY, async (op, payment: Payment) => {
    await op.transaction('created', (tx) => note(tx, `${op.key} created`))
    const charge = await op.call('charged', { ...options, ...charging(gateway, op, payment) })
    return op.transaction('settled', async (tx) => {
      await note(tx, `${op.key} settled`)
      return reply(201, { charge: charge.id })
    })
  })
}

export interface SeenRecord {
  readonly state: string
  readonly fence: number
  readonly lapsed: boolean
  readonly points: number | null
  readonly recovery_point: string | null
  readonly progress: string | null
  readonly error_code: string | null
}

/** What is durable about a key; null where nothing is. */
export async function lookAt(pool: pg.Pool, key: string): Promise<SeenRecord | null> {
  const { rows } = await pool.query(
    `SELECT state, fence::int, coalesce(lease_until <= clock_timestamp(), false) AS lapsed, points, recovery_point,
       encode(progress, 'escape') AS progress, error_code
     FROM onlyonce.records WHERE key = $1`,
    [key],
  )
  return rows[0] ?? null
}

/** Waits for a fact about the record of a key, and gives it as it is then. */
export async function untilRecord(
  pool: pg.Pool,
  key: string,
  what: string,
  isTrue: (record: SeenRecord) => boolean,
): Promise<SeenRecord> {
  let seen: SeenRecord | null = null
  await waitUntil(what, async () => {
    seen = await lookAt(pool, key)
    return seen !== null && isTrue(seen)
  })
  return seen!
}

export const untilState = (pool: pg.Pool, key: string, state: string): Promise<SeenRecord> =>
  untilRecord(pool, key, `it is ${state}`, (record) => record.state === state)

/** By the clock of the database, which alone counts. */
export async function untilLapsed(pool: pg.Pool, key: string): Promise<void> {
  await untilRecord(pool, key, 'its lease is over', ({ lapsed }) => lapsed)
}

export async function countNotes(pool: pg.Pool, text: string): Promise<number> {
  const { rowCount } = await pool.query('SELECT FROM effects WHERE note = $1', [text])
  return rowCount ?? 0
}
