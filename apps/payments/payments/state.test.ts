import { beforeAll, describe, expect, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { migrate } from '../database/migrate.ts'
import { afterCapture, afterLettingGo, MOVES, STATUSES, type Status } from './state.ts'

let database: FreshDatabase

beforeAll(async () => {
  database = await freshDatabase()
  await migrate(database.pool({ max: 1 }))
})

/** What a payment of 100 in this state has taken and holds. */
const SUMS: Readonly<Record<Status, readonly [captured: number, held: number]>> = {
  processing: [0, 0],
  unknown: [0, 0],
  requires_capture: [0, 100],
  partially_captured: [40, 60],
  succeeded: [100, 0],
  failed: [0, 0],
  canceled: [0, 0],
  expired: [0, 0],
}

const INSERT = `
INSERT INTO payments.payments (account, id, status, amount, currency, capture_method, payment_method,
  idempotency_key, gateway, captured, held)
VALUES ('a:test', $1, $2, 100, 'EUR', 'manual', 'pm_card_visa', 'k', 'stripe', $3, $4)`
const MOVE = `
UPDATE payments.payments SET status = $2, captured = $3, held = $4 WHERE account = 'a:test' AND id = $1`

describe('the machine of payments', () => {
  it('is the same in the code and in the database', async () => {
    const pool = database.pool({ max: 1 })
    for (const from of STATUSES) {
      for (const to of STATUSES.filter((status) => status !== from)) {
        const id = `pay_${from}_${to}`
        await pool.query(INSERT, [id, from, ...SUMS[from]])
        const moved = await pool.query(MOVE, [id, to, ...SUMS[to]]).then(
          () => true,
          (error) => error.code !== '23514' || error,
        )
        expect([from, to, moved === true]).toEqual([from, to, MOVES[from].includes(to)])
      }
    }
  })

  it('knows no sums beyond the amount, and none that do not fit the state', async () => {
    const pool = database.pool({ max: 1 })
    const wrong: [Status, number, number][] = [
      ['succeeded', 101, 0],
      ['succeeded', 0, 0],
      ['requires_capture', 0, 101],
      ['requires_capture', 1, 99],
      ['partially_captured', 100, 0],
      ['canceled', 1, 0],
      ['failed', 0, 1],
    ]
    for (const [i, [status, captured, held]] of wrong.entries()) {
      await expect(pool.query(INSERT, [`pay_${i}`, status, captured, held])).rejects.toThrow('violates check')
    }
  })

  it('says where captures and letting go lead', () => {
    expect(afterCapture(40, 100, false)).toBe('partially_captured')
    expect(afterCapture(40, 100, true)).toBe('succeeded')
    expect(afterCapture(100, 100, false)).toBe('succeeded')
    expect(afterLettingGo(0, 'expired')).toBe('expired')
    expect(afterLettingGo(0, 'canceled')).toBe('canceled')
    expect(afterLettingGo(1, 'canceled')).toBe('succeeded')
  })
})
