import { beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../limits.ts'
import { openLedger } from '../test/ledger.ts'
import { type OwnMovement, ownMovements } from './index.ts'

const HOUR_MS = 3_600_000
const from = new Date('2026-03-01T00:00:00Z')
const to = new Date('2026-03-02T00:00:00Z')
const pool = await openLedger()

/** Many of one moment, in three accounts, two modes and two processors. */
const MANY = `
INSERT INTO payments.payments (account, id, status, amount, currency, capture_method, payment_method, idempotency_key,
  gateway, gateway_id, captured, refunded, created_at, updated_at)
SELECT 'acct_' || n % 3 || CASE WHEN n % 5 = 0 THEN ':live' ELSE ':test' END, 'pay_' || n, 'succeeded', 100, 'EUR', 'automatic',
  'pm', 'key', CASE WHEN n % 7 = 0 THEN 'other' ELSE 'stripe' END, 'pi_' || n, 100, 10, $1, $1
FROM generate_series(1, $2::int) AS n`
const REFUNDS = `
INSERT INTO payments.refunds (account, payment, id, amount, status, idempotency_key, gateway_id, created_at)
SELECT account, id, 'ref' || substr(id, 4), 10, 'succeeded', 'key', 're' || substr(gateway_id, 3), created_at FROM payments.payments`

async function read(range: { from: Date; to: Date }, theirReadingBegan = '2026-03-03T00:00:00Z') {
  const found: OwnMovement[] = []
  const gateway = { name: 'stripe', mode: 'test' } as const
  for await (const own of ownMovements(pool, gateway, { ...range, theirReadingBegan })) found.push(own)
  return found
}

it('our books are read in pages, each movement once, for one processor and mode', async () => {
  const number = LIMITS.reconcilePageMax * 3
  await pool.query(MANY, ['2026-03-01T00:00:00.000001Z', number])
  await pool.query(REFUNDS)
  const numbers = Array.from({ length: number }, (_, i) => i + 1).filter((n) => n % 5 !== 0 && n % 7 !== 0)
  expect(numbers.length).toBeGreaterThan(LIMITS.reconcilePageMax * 2)
  const found = await read({ from, to })
  const ids = (kind: string) => found.filter((own) => own.kind === kind).map(({ id }) => id)
  expect(ids('payment').sort()).toEqual(numbers.map((n) => `pay_${n}`).sort())
  expect(ids('refund').sort()).toEqual(numbers.map((n) => `ref_${n}`).sort())
  expect(found.find(({ id }) => id === 'pay_1')).toEqual({
    account: 'acct_1:test',
    kind: 'payment',
    id: 'pay_1',
    gateway_id: 'pi_1',
    amount: 100,
    currency: 'EUR',
    moved: 100,
    at: '2026-03-01T00:00:00.000Z',
  })
  expect(found.find(({ id }) => id === 'ref_1')).toMatchObject({
    kind: 'refund',
    gateway_id: 're_1',
    moved: 10,
  })
  expect(await read({ from: new Date(from.getTime() - HOUR_MS), to: from })).toEqual([])
  expect(await read({ from: new Date(from.getTime() + 1), to })).toEqual([])
})

it('what was changed since the processor was read is not known', async () => {
  const found = await read({ from, to }, '2026-03-01T00:00:00.000001Z')
  expect(new Set(found.map(({ moved, unknown_since: unknownSince }) => `${moved} ${unknownSince}`))).toEqual(
    new Set(['null 2026-03-01T00:00:00.000Z']),
  )
})

describe('a payment', () => {
  // It is put into each state, whatever it was in before.
  beforeAll(() => pool.query('ALTER TABLE payments.payments DISABLE TRIGGER check_move'))

  it.each([
    ['processing', 'captured = 0, refunded = 0', 'processing', null],
    ['unknown', 'captured = 0, refunded = 0', 'processing', null],
    ['failed', 'captured = 0, refunded = 0', 'failed', 0],
    ['partially_captured', 'captured = 40', 'succeeded', 40],
    ['partially_captured', 'captured = 40, capturing = 60', 'succeeded', null],
  ])('that is %s, with %s', async (status, changes, refund, moved) => {
    await pool.query(`UPDATE payments.payments SET ${changes}, status = $1 WHERE id = 'pay_1'`, [status])
    await pool.query(`UPDATE payments.refunds SET status = $1 WHERE id = 'ref_1'`, [refund])
    const found = await read({ from, to })
    expect(found.find(({ id }) => id === 'pay_1')!.moved).toBe(moved)
    const givenBack = { processing: null, failed: 0, succeeded: 10 }[refund]
    expect(found.find(({ id }) => id === 'ref_1')!.moved).toBe(givenBack)
  })
})
