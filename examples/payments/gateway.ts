import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Found } from '../../src/index.ts'

export interface Charge {
  readonly id: string
  readonly status: 'captured' | 'declined'
}

export interface Gateway {
  charge(amount: number, key: string): Promise<Charge>
  find(key: string): Promise<Found<Charge>>
}

/** What it does stays done when the process that asked is gone. Elsewhere, this would be another company's database. */
const TABLE = `CREATE TABLE IF NOT EXISTS gateway_charges (
  key    text PRIMARY KEY,
  id     uuid NOT NULL,
  status text NOT NULL
)`
const AMOUNT_MAX = 100_000
const SLOW_MS = 1_000

/** A gateway as there are many: it does each key once, declines what is too much, and its answers get lost, or are late. */
export async function openGateway(pool: pg.Pool): Promise<Gateway> {
  await pool.query(TABLE)
  const find = async (key: string): Promise<Found<Charge>> => {
    const { rows } = await pool.query<Charge>('SELECT id, status FROM gateway_charges WHERE key = $1', [key])
    return rows[0] === undefined ? { status: 'not_found' } : { status: 'found', result: rows[0] }
  }
  return {
    find,
    async charge(amount, key) {
      const status = amount > AMOUNT_MAX ? 'declined' : 'captured'
      const text =
        'INSERT INTO gateway_charges (key, id, status) VALUES ($1, $2, $3) ON CONFLICT (key) DO NOTHING'
      await pool.query(text, [key, randomUUID(), status])
      const cents = amount % 100
      if (cents === 13) throw new Error('socket hang up')
      if (cents === 14) await sleep(SLOW_MS)
      const found = await find(key)
      if (found.status !== 'found') throw new Error('the gateway has lost a charge')
      return found.result
    },
  }
}
