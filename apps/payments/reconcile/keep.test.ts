import type pg from 'pg'
import { beforeAll, expect, it } from 'vitest'
import type { Movement } from '../gateway/index.ts'
import { openLedger, transact } from '../test/ledger.ts'
import { compare, keepRun, type OwnMovement } from './index.ts'

const from = new Date('2026-03-01T00:00:00Z')
const to = new Date('2026-03-02T00:00:00Z')
const at = '2026-03-01T12:00:00Z'
const books = 'stripe:live'

const theirs = (gatewayId: string, moved: number): Movement => ({
  account: null,
  kind: 'payment',
  gateway_id: gatewayId,
  reference: null,
  amount: moved,
  currency: 'EUR',
  moved,
  at,
})
const ours = (account: string, gatewayId: string): OwnMovement => ({
  ...theirs(gatewayId, 500),
  account,
  id: `pay_${gatewayId}`,
})

let pool: pg.Pool
beforeAll(async () => {
  pool = await openLedger()
})

const keep = (own: OwnMovement[], other: Movement[]) =>
  transact(pool, (tx) =>
    keepRun(tx, { books, from, to, comparison: compare(own, other, { from, to, now: to }) }),
  )

it('tells a difference once, and again when it differs in another way', async () => {
  const first = await keep([ours('acct_a:live', 'pi_a')], [theirs('pi_b', 700), theirs('pi_a', 400)])
  expect(first.fresh.map(({ account, difference }) => [account, difference.difference])).toEqual([
    [books, 'missing_here'],
    ['acct_a:live', 'amount_mismatch'],
  ])
  const second = await keep([ours('acct_a:live', 'pi_a')], [theirs('pi_b', 700), theirs('pi_a', 300)])
  expect(second.fresh.map(({ difference }) => difference.theirs?.moved)).toEqual([300])
  const third = await keep([ours('acct_a:live', 'pi_a')], [theirs('pi_b', 700), theirs('pi_a', 500)])
  expect(third.fresh).toEqual([])
  const { rows } = await pool.query(
    'SELECT id, matched::int, missing_here::int, amount_mismatch::int FROM payments.reconciliation_runs ORDER BY created_at',
  )
  expect(rows).toEqual([
    { id: first.id, matched: 0, missing_here: 1, amount_mismatch: 1 },
    { id: second.id, matched: 0, missing_here: 1, amount_mismatch: 1 },
    { id: third.id, matched: 1, missing_here: 1, amount_mismatch: 0 },
  ])
})

it('tells it again where the telling was rolled back', async () => {
  const comparison = compare([], [theirs('pi_c', 1)], { from, to, now: to })
  const failing = transact(pool, async (tx) => {
    await keepRun(tx, { books, from, to, comparison })
    throw new Error('on purpose')
  })
  await expect(failing).rejects.toThrow('on purpose')
  expect((await keep([], [theirs('pi_c', 1)])).fresh).toHaveLength(1)
})

it('tells many, in runs at the same time, once between them', async () => {
  const many = Array.from({ length: 1_200 }, (_, i) => theirs(`pi_many_${i}`, 1))
  const kept = await Promise.all([keep([], many), keep([], many.toReversed()), keep([], many)])
  expect(kept.reduce((sum, { fresh }) => sum + fresh.length, 0)).toBe(1_200)
})

it.each(['reconciliation_runs', 'reconciliation_differences'])(
  'payments.%s is only added to',
  async (table) => {
    for (const text of [
      `UPDATE payments.${table} SET account = account`,
      `DELETE FROM payments.${table}`,
      `TRUNCATE payments.${table}`,
    ]) {
      await expect(pool.query(text), text).rejects.toMatchObject({ code: 'PL001' })
    }
  },
)
