import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { waitUntil } from '../../../test/setup/wait.ts'
import { openLedger, transact } from '../test/ledger.ts'
import {
  availableOf,
  balances,
  captureLines,
  checkpoint,
  lockBalance,
  post,
  transferOutLines,
} from './index.ts'

const eur = (amount: number) => ({ amount, currency: 'EUR' })
const DEBITS = 50
const TRIES_MAX = 1_000

let pool: pg.Pool
let accounts = 0
beforeAll(async () => {
  pool = await openLedger({ max: 20 })
})

async function accountWith(amount: number): Promise<string> {
  const account = `acct_${++accounts}:test`
  await capture(pool, account, 'cap_first', amount)
  return account
}

const capture = (tx: pg.Pool | pg.PoolClient, account: string, source: string, amount: number) =>
  post(tx, { account, kind: 'capture', source, state: 'posted', lines: captureLines(eur(amount)) })

/** As a transfer does it; started again as often as the database asks for it. */
async function debit(account: string, source: string, amount: number, begin: string): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      return await transact(
        pool,
        async (tx) => {
          // The snapshot is older than the lock, as where other statements come before.
          await tx.query('SELECT 1 FROM payments.ledger_locks LIMIT 0')
          await lockBalance(tx, account, 'EUR')
          if ((await availableOf(tx, account, 'EUR')) < BigInt(amount)) return false
          const lines = transferOutLines(eur(amount))
          await post(tx, { account, kind: 'transfer_out', source, state: 'posted', lines })
          return true
        },
        begin,
      )
    } catch (error) {
      if ((error as { code?: string }).code !== '40001' || tries === TRIES_MAX) throw error
    }
  }
}

describe.each([
  'BEGIN ISOLATION LEVEL READ COMMITTED',
  'BEGIN ISOLATION LEVEL REPEATABLE READ',
  'BEGIN ISOLATION LEVEL SERIALIZABLE',
])('%s', (begin) => {
  it(`${DEBITS} debits at once never overdraw`, async () => {
    const account = await accountWith(100)
    const debits = Array.from({ length: DEBITS }, (_, i) => debit(account, `trf_${i}`, 7, begin))
    const done = (await Promise.all(debits)).filter((wentThrough) => wentThrough).length
    expect(done).toBe(14)
    expect(await availableOf(pool, account, 'EUR')).toBe(2n)
  })

  it('payments of one account do not wait for each other, nor for a debit', async () => {
    const account = await accountWith(100)
    const [first, second, third] = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
    const clients = [first, second, third]
    try {
      for (const client of clients) {
        await client.query(begin)
        await client.query(`SET LOCAL lock_timeout = '2s'`)
      }
      await lockBalance(first, account, 'EUR')
      await availableOf(first, account, 'EUR')
      await capture(second, account, 'cap_second', 10)
      await capture(third, account, 'cap_third', 20)
      for (const client of clients.toReversed()) await client.query('COMMIT')
    } finally {
      for (const client of clients) {
        await client.query('ROLLBACK')
        client.release()
      }
    }
    expect(await availableOf(pool, account, 'EUR')).toBe(130n)
  })
})

it('serializable payments of one account never collide', async () => {
  const account = await accountWith(1)
  const payments = Array.from({ length: 200 }, (_, i) =>
    transact(
      pool,
      async (tx) => {
        await capture(tx, account, `cap_${i}`, 1)
        await capture(tx, account, `cap_${i}_b`, 1)
      },
      'BEGIN ISOLATION LEVEL SERIALIZABLE',
    ),
  )
  const ended = await Promise.allSettled(payments)
  expect(ended.filter(({ status }) => status === 'rejected')).toEqual([])
  expect(await availableOf(pool, account, 'EUR')).toBe(401n)
})

describe('checkpoints', () => {
  it('wait for a writer that has a number and is still open, and for nobody who comes later', async () => {
    const account = await accountWith(100)
    const slow = await pool.connect()
    try {
      await slow.query('BEGIN')
      await capture(slow, account, 'cap_slow', 10)
      await capture(pool, account, 'cap_fast', 1)
      expect(await checkpoint(pool, { entriesMin: 1, waitMaxMs: 100 })).toEqual({
        written: 0,
        waitsForWriters: true,
      })
      const later = await pool.connect()
      const { rows: clock } = await pool.query('SELECT clock_timestamp()::text AS now')
      const waiting = checkpoint(pool, { entriesMin: 1 })
      await waitUntil('the checkpoint has looked at writers', async () => {
        const { rows } = await pool.query(
          `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND query LIKE '%pg_locks%' AND query_start > $1::timestamptz AND state = 'idle'`,
          [clock[0].now],
        )
        return rows.length > 0
      })
      await later.query('BEGIN')
      await capture(later, account, 'cap_later', 1_000)
      await slow.query('COMMIT')
      expect(await waiting).toMatchObject({ waitsForWriters: false })
      await later.query('COMMIT')
      later.release()
    } finally {
      slow.release()
    }
    expect(await availableOf(pool, account, 'EUR')).toBe(1_111n)
    const { rows } = await pool.query(
      'SELECT total::int FROM payments.ledger_checkpoints WHERE account = $1 ORDER BY up_to',
      [account],
    )
    expect(rows).toEqual([{ total: -111 }])
  })

  it('are counted on from, and are written only where they are worth it', async () => {
    const account = await accountWith(5)
    await checkpoint(pool, { entriesMin: 1 })
    expect((await checkpoint(pool, { entriesMin: 1 })).written).toBe(0)
    await capture(pool, account, 'cap_second', 10)
    expect((await checkpoint(pool, { entriesMin: 2 })).written).toBe(0)
    expect((await checkpoint(pool, { entriesMin: 1 })).written).toBe(1)
    await capture(pool, account, 'cap_third', 100)
    expect(await balances(pool, account)).toEqual([{ currency: 'EUR', available: 115n, pending: 0n }])
  })

  it('of an empty ledger cover nothing that comes later', async () => {
    const empty = await openLedger()
    await checkpoint(empty, { entriesMin: 0 })
    await capture(empty, 'acct_a:test', 'cap_first', 3)
    await checkpoint(empty, { entriesMin: 0 })
    expect(await availableOf(empty, 'acct_a:test', 'EUR')).toBe(3n)
  })

  it('reach every balance, over many pages', async () => {
    const many = await openLedger()
    await many.query(
      `INSERT INTO payments.ledger_transactions
         (account, id, kind, source, state, ledger_accounts, currencies, amounts)
       SELECT 'acct_' || i, 'txn_' || i, 'capture', 'a', 'posted', '{gateway,balance}', '{EUR,EUR}',
         ARRAY[i, -i]::bigint[]
       FROM generate_series(1, 1500) AS i`,
    )
    expect((await checkpoint(many, { entriesMin: 1 })).written).toBe(1_500)
    const { rows } = await many.query(
      `SELECT count(*)::int AS wrong FROM payments.ledger_checkpoints
       WHERE total <> -substring(account FROM 6)::int`,
    )
    expect(rows).toEqual([{ wrong: 0 }])
  })
})
