import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { ACCOUNT, OTHER, openLedger, transact } from '../test/ledger.ts'
import {
  authorizationLines,
  availableOf,
  balances,
  captureLines,
  type Line,
  post,
  refundLines,
  reverse,
  transferInLines,
  transferOutLines,
} from './index.ts'

const eur = (amount: number) => ({ amount, currency: 'EUR' })
let pool: pg.Pool
let sources = 0
const nextSource = () => `pay_${++sources}`
const nextAccount = () => `acct_${++sources}:test`

const capture = (account: string, amount: number, source = nextSource()) =>
  post(pool, { account, kind: 'capture', source, state: 'posted', lines: captureLines(eur(amount)) })

beforeAll(async () => {
  pool = await openLedger()
})

describe('movements', () => {
  it('of a payment that is captured in parts, and refunded', async () => {
    const account = nextAccount()
    const payment = nextSource()
    await post(pool, {
      account,
      kind: 'authorization',
      source: payment,
      state: 'pending',
      lines: authorizationLines(eur(100)),
    })
    expect(await balances(pool, account)).toEqual([{ currency: 'EUR', available: 0n, pending: 100n }])
    const of = { kind: 'authorization', source: payment }
    await reverse(pool, { account, kind: 'release', source: 'cap_a', of, amount: 60 })
    await capture(account, 60, 'cap_a')
    expect(await balances(pool, account)).toEqual([{ currency: 'EUR', available: 60n, pending: 40n }])
    await reverse(pool, { account, kind: 'release', source: payment, of, amount: 40n })
    const refund = {
      account,
      kind: 'refund',
      source: 'ref_a',
      state: 'posted',
      lines: refundLines(eur(25)),
    } as const
    await post(pool, refund)
    expect(await balances(pool, account)).toEqual([{ currency: 'EUR', available: 35n, pending: 0n }])
    expect(await availableOf(pool, account, 'EUR')).toBe(35n)
  })

  it('of a transfer clear to zero', async () => {
    const [from, to] = [nextAccount(), nextAccount()]
    await capture(from, 100)
    const transfer = { kind: 'transfer_out', source: 'trf_a', state: 'posted' } as const
    await post(pool, { ...transfer, account: from, lines: transferOutLines(eur(30)) })
    await post(pool, { ...transfer, account: to, kind: 'transfer_in', lines: transferInLines(eur(30)) })
    expect(await availableOf(pool, from, 'EUR')).toBe(70n)
    expect(await availableOf(pool, to, 'EUR')).toBe(30n)
    const { rows } = await pool.query(
      `SELECT sum(amount)::int AS total FROM payments.ledger_entries
       WHERE ledger_account = 'transfers' AND account = ANY ($1)`,
      [[from, to]],
    )
    expect(rows).toEqual([{ total: 0 }])
  })

  it('keep accounts, modes and currencies apart, and amounts beyond safe integers exact', async () => {
    const account = nextAccount()
    const huge = 2n ** 62n
    const lines: Line[] = [
      { ledgerAccount: 'gateway', currency: 'EUR', amount: huge },
      { ledgerAccount: 'balance', currency: 'EUR', amount: -huge },
      { ledgerAccount: 'gateway', currency: 'JPY', amount: 7 },
      { ledgerAccount: 'balance', currency: 'JPY', amount: -7 },
    ]
    for (const source of ['a', 'b', 'c'])
      await post(pool, { account, kind: 'capture', source, state: 'posted', lines })
    expect(await balances(pool, account)).toEqual([
      { currency: 'EUR', available: 3n * huge, pending: 0n },
      { currency: 'JPY', available: 21n, pending: 0n },
    ])
    expect(await balances(pool, account.replace(':test', ':live'))).toEqual([])
    expect(await availableOf(pool, account, 'USD')).toBe(0n)
  })

  it('are one statement', async () => {
    const asked: string[] = []
    const tx = {
      query: (text: string, values?: unknown[]) => {
        asked.push(text)
        return pool.query(text, values)
      },
    }
    await post(tx, {
      account: nextAccount(),
      kind: 'capture',
      source: 'a',
      state: 'posted',
      lines: captureLines(eur(1)),
    })
    expect(asked).toHaveLength(1)
  })
})

describe('the door refuses', () => {
  const unsafe = (amount: number) =>
    post(pool, {
      account: ACCOUNT,
      kind: 'capture',
      source: 'a',
      state: 'posted',
      lines: captureLines(eur(amount)),
    })
  it.each([1.5, Number.NaN, 2 ** 53])('%s, which is not exact', async (amount) => {
    await expect(unsafe(amount)).rejects.toThrow(RangeError)
  })

  it('to reverse what there is not, what belongs to another, and more than there is', async () => {
    const account = nextAccount()
    await capture(account, 100, 'cap_x')
    const of = { kind: 'capture', source: 'cap_x' }
    const undo = { account, kind: 'undo', source: 'u', of }
    await expect(reverse(pool, { ...undo, of: { ...of, source: 'cap_y' } })).rejects.toThrow(
      /no capture of cap_y/,
    )
    await expect(reverse(pool, { ...undo, account: OTHER })).rejects.toThrow(/no capture of cap_x/)
    for (const amount of [101, 0, -1]) {
      await expect(reverse(pool, { ...undo, amount })).rejects.toThrow(/can be reversed/)
    }
    await reverse(pool, undo)
    expect(await availableOf(pool, account, 'EUR')).toBe(0n)
  })
})

describe('the database refuses', () => {
  const lines = captureLines(eur(100))
  const posting = (changed: object) =>
    post(pool, { account: nextAccount(), kind: 'capture', source: 'a', state: 'posted', lines, ...changed })
  const line = (ledgerAccount: string, currency: string, amount: number) => ({
    ledgerAccount,
    currency,
    amount,
  })

  it.each([
    ['lines that do not come to zero', [line('gateway', 'EUR', 100), line('balance', 'EUR', -99)], 'zero'],
    ['lines that do only over currencies', [line('gateway', 'EUR', 1), line('balance', 'USD', -1)], 'zero'],
    ['a transaction without lines', [], 'lines'],
    ['a single line', [line('gateway', 'EUR', 1)], 'lines'],
    [
      'a line of nothing',
      [line('gateway', 'EUR', 1), line('fees', 'EUR', 0), line('balance', 'EUR', -1)],
      'lines',
    ],
    ['an unknown ledger account', [line('cash', 'EUR', 1), line('balance', 'EUR', -1)], 'accounts'],
  ])('%s', async (_, bad, constraint) => {
    await expect(posting({ lines: bad })).rejects.toMatchObject({
      code: '23514',
      constraint: `ledger_transactions_${constraint}`,
    })
  })

  it('what is no currency, no state and no kind', async () => {
    await expect(
      posting({ lines: [line('gateway', 'eur', 1), line('balance', 'eur', -1)] }),
    ).rejects.toMatchObject({
      constraint: 'ledger_entries_currency',
    })
    await expect(posting({ state: 'void' })).rejects.toMatchObject({
      constraint: 'ledger_transactions_state',
    })
    await expect(posting({ kind: 'Capture!' })).rejects.toMatchObject({
      constraint: 'ledger_transactions_words',
    })
  })

  it('the same source a second time', async () => {
    const account = nextAccount()
    await capture(account, 100, 'cap_twice')
    await expect(capture(account, 100, 'cap_twice')).rejects.toMatchObject({
      code: '23505',
      constraint: 'ledger_transactions_once',
    })
    expect(await availableOf(pool, account, 'EUR')).toBe(100n)
  })

  it('the reversal of nothing, and of what belongs to another account', async () => {
    const { id } = await capture(nextAccount(), 100)
    for (const reverses of [id, 'txn_none']) {
      await expect(posting({ reverses })).rejects.toMatchObject({
        constraint: 'ledger_transactions_reverses',
      })
    }
  })

  it.each(['ledger_transactions', 'ledger_entries', 'ledger_checkpoints'])(
    'any change of payments.%s, to its owner too',
    async (table) => {
      for (const text of [
        `UPDATE payments.${table} SET account = account`,
        `UPDATE payments.${table} SET account = account WHERE false`,
        `DELETE FROM payments.${table}`,
        `TRUNCATE payments.${table} CASCADE`,
        `MERGE INTO payments.${table} AS t USING (SELECT 1) AS s ON true WHEN MATCHED THEN DELETE`,
      ]) {
        await expect(pool.query(text), text).rejects.toMatchObject({ code: 'PL001' })
      }
    },
  )

  it('entries that do not come with their transaction, also inside the same commit', async () => {
    const add = (tx: { query: pg.Pool['query'] }, account: string, transaction: string) =>
      tx.query(
        `INSERT INTO payments.ledger_entries (account, transaction, line, ledger_account, currency, amount, state)
         VALUES ($1, $2, 3, 'gateway', 'EUR', 5, 'posted'), ($1, $2, 4, 'balance', 'EUR', -5, 'posted')`,
        [account, transaction],
      )
    const account = nextAccount()
    const { id } = await capture(account, 100)
    await expect(add(pool, account, id)).rejects.toMatchObject({ code: 'PL002' })
    const both = transact(pool, async (tx) => {
      const made = await post(tx, { account, kind: 'capture', source: 'b', state: 'posted', lines })
      await add(tx as unknown as pg.Pool, account, made.id)
    })
    await expect(both).rejects.toMatchObject({ code: 'PL002' })
    expect(await availableOf(pool, account, 'EUR')).toBe(100n)
  })
})
