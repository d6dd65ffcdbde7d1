import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { compiled } from '../../../test/setup/compiled.ts'
import { ACCOUNT, corrupt, OTHER, openLedger, rolledBack, transact } from '../test/ledger.ts'
import {
  authorizationLines,
  captureLines,
  checkpoint,
  post,
  refundLines,
  reverse,
  transferInLines,
  transferOutLines,
  type Verification,
  verify,
} from './index.ts'
import { verifyWithin } from './verify.ts'
import { CHECKS } from './verify-sql.ts'

const eur = (amount: number) => ({ amount, currency: 'EUR' })
const account = ACCOUNT
const posted = 'posted' as const
let pool: pg.Pool
let capture: string
let hold: string
let release: string

/** One of each movement, two checkpoints, and nothing wrong. */
beforeAll(async () => {
  pool = await openLedger()
  const authorization = { kind: 'authorization', source: 'pay_a' }
  hold = (
    await post(pool, { account, ...authorization, state: 'pending', lines: authorizationLines(eur(100)) })
  ).id
  const released = { account, kind: 'release', source: 'cap_a', of: authorization, amount: 60 }
  release = (await reverse(pool, released)).id
  capture = (
    await post(pool, {
      account,
      kind: 'capture',
      source: 'cap_a',
      state: posted,
      lines: captureLines(eur(60)),
    })
  ).id
  await checkpoint(pool, { entriesMin: 1 })
  await post(pool, { account, kind: 'refund', source: 'ref_a', state: posted, lines: refundLines(eur(5)) })
  await post(pool, {
    account,
    kind: 'transfer_out',
    source: 'trf_a',
    state: posted,
    lines: transferOutLines(eur(9)),
  })
  await post(pool, {
    account: OTHER,
    kind: 'transfer_in',
    source: 'trf_a',
    state: posted,
    lines: transferInLines(eur(9)),
  })
  await checkpoint(pool, { entriesMin: 1 })
})

const checksOf = ({ problems }: Verification) => [...new Set(problems.map(({ check }) => check))]

/** What is found after something was done, which nobody else ever sees. */
const verifyAfter = (work: (tx: pg.PoolClient) => Promise<unknown>) =>
  rolledBack(pool, async (tx) => {
    await work(tx)
    return verifyWithin(tx)
  })

it('finds nothing where nothing is wrong', async () => {
  expect(await verify(pool)).toEqual({
    ok: true,
    transactions: 6,
    entries: 12,
    problems: [],
    in_flight: [],
    cut_short: [],
  })
})

it('lists transfers that have not arrived, which is no error', async () => {
  const transfer = { account, kind: 'transfer_out', source: 'trf_b', state: posted }
  const { ok, in_flight: inFlight } = await verifyAfter((tx) =>
    post(tx, { ...transfer, lines: transferOutLines(eur(3)) }),
  )
  expect(ok).toBe(true)
  expect(inFlight).toEqual([
    { account, source: 'trf_b', currency: 'EUR', amount: '3', since: expect.any(Date) },
  ])
})

describe('finds', () => {
  const insert = (id: string, source: string, more: string, lines: string) =>
    `INSERT INTO payments.ledger_transactions (account, id, kind, source, state, reverses, ledger_accounts, currencies, amounts)
     VALUES ('${ACCOUNT}', '${id}', 'odd', '${source}', ${more}, ${lines})`

  /** A transaction with its entries: only what the trigger does not look at is wrong. */
  const add = (tx: pg.PoolClient, id: string, state: string, reverses: string, lines: string) =>
    tx.query(insert(id, id, `'${state}', '${reverses}'`, lines))

  it.each([
    [
      'a changed amount',
      `UPDATE payments.ledger_entries SET amount = 61 WHERE amount = 60 AND state = 'posted'`,
      'not_zero',
    ],
    [
      'amounts that were changed and still come to zero',
      `UPDATE payments.ledger_entries SET amount = amount * 10 WHERE abs(amount) = 60 AND state = 'posted'`,
      'entries_not_as_sealed',
    ],
    ['a removed line', `DELETE FROM payments.ledger_entries WHERE line = 2 AND amount = -60`, 'not_zero'],
    ['removed entries', `DELETE FROM payments.ledger_entries WHERE abs(amount) = 5`, 'entries_not_as_sealed'],
    [
      'a removed transaction',
      `DELETE FROM payments.ledger_transactions WHERE kind = 'refund'`,
      'entry_without_transaction',
    ],
    [
      'lines of another currency',
      `UPDATE payments.ledger_entries SET currency = 'USD' WHERE abs(amount) = 5`,
      'entries_not_as_sealed',
    ],
    [
      'entries of another state',
      `UPDATE payments.ledger_entries SET state = 'pending' WHERE abs(amount) = 5`,
      'entries_not_as_sealed',
    ],
    [
      'lines that were sealed anew',
      `UPDATE payments.ledger_transactions SET amounts = '{7,-7}' WHERE kind = 'refund'`,
      'entries_not_as_sealed',
    ],
    [
      'a reversal of nothing',
      `UPDATE payments.ledger_transactions SET reverses = 'txn_none' WHERE kind = 'release'`,
      'reversal_of_nothing',
    ],
    [
      'a removed hold',
      `DELETE FROM payments.ledger_transactions WHERE kind = 'authorization'`,
      'reversal_of_nothing',
    ],
    [
      'a checkpoint that is off',
      `UPDATE payments.ledger_checkpoints SET total = total - 1`,
      'checkpoint_wrong',
    ],
    [
      'a transfer whose origin was removed',
      `DELETE FROM payments.ledger_transactions WHERE kind = 'transfer_out'`,
      'transfer_without_origin',
    ],
    [
      'numbers that would come again',
      `INSERT INTO payments.ledger_checkpoints (account, currency, state, up_to, total) VALUES ('a', 'EUR', 'posted', 1000, 0)`,
      'numbers_behind',
    ],
  ])('%s', async (_, text, check) => {
    expect(checksOf(await verifyAfter((tx) => corrupt(tx, text)))).toContain(check)
  })

  it('what was never written out, because triggers were off', async () => {
    const text = insert('txn_x', 'x', `'posted', NULL`, `'{gateway,balance}', '{EUR,EUR}', '{1,-1}'`)
    expect((await verifyAfter((tx) => corrupt(tx, text))).problems).toEqual([
      { check: 'entries_not_as_sealed', account, id: 'txn_x', what: 'has no entries' },
    ])
  })

  it('what the constraints would have refused, and that they are gone', async () => {
    const found = await verifyAfter(async (tx) => {
      await tx.query('ALTER TABLE payments.ledger_entries DROP CONSTRAINT ledger_entries_account')
      await corrupt(tx, `UPDATE payments.ledger_entries SET ledger_account = 'cash' WHERE amount = 5`)
    })
    expect(checksOf(found)).toEqual(['entries_not_as_sealed', 'malformed', 'checkpoint_wrong', 'unguarded'])
  })

  it('the same thing posted twice', async () => {
    const again = insert('txn_y', 'cap_a', `'posted', NULL`, `'{gateway,balance}', '{EUR,EUR}', '{60,-60}'`)
    const found = await verifyAfter(async (tx) => {
      await tx.query('ALTER TABLE payments.ledger_transactions DROP CONSTRAINT ledger_transactions_once')
      await tx.query(again.replace(`'odd'`, `'capture'`))
    })
    expect(checksOf(found)).toEqual(['posted_twice', 'unguarded'])
  })

  it('a reversal of another state, in the wrong direction, of other accounts, and of a reversal', async () => {
    const { problems } = await verifyAfter(async (tx) => {
      await add(tx, 'txn_1', 'posted', hold, `'{gateway,balance}', '{EUR,EUR}', '{-1,1}'`)
      await add(tx, 'txn_2', 'pending', hold, `'{gateway,balance}', '{EUR,EUR}', '{1,-1}'`)
      await add(tx, 'txn_3', 'posted', capture, `'{fees,balance}', '{EUR,EUR}', '{-1,1}'`)
      await add(tx, 'txn_4', 'pending', release, `'{gateway,balance}', '{EUR,EUR}', '{1,-1}'`)
    })
    expect(new Set(problems.map(({ check, id }) => `${check} ${id}`))).toEqual(
      new Set([
        'reversal_of_nothing txn_1',
        'reversal_not_mirrored txn_2',
        'reversal_not_mirrored txn_3',
        'reversal_of_nothing txn_4',
      ]),
    )
  })

  it('what is reversed in excess, and holds that are negative', async () => {
    const of = { kind: 'authorization', source: 'pay_a' }
    const { problems } = await verifyAfter((tx) =>
      reverse(tx, { account, kind: 'release', source: 'cap_b', of, amount: 41 }),
    )
    expect(problems.map(({ check, id, what }) => [check, id, what].join(' ')).sort()).toEqual([
      'pending_negative  holds -1 EUR',
      `reversed_in_excess ${hold} balance -100 EUR was reversed by 101`,
      `reversed_in_excess ${hold} gateway 100 EUR was reversed by -101`,
    ])
  })

  it.each([
    'ALTER TABLE payments.ledger_entries DISABLE TRIGGER ledger_entries_are_kept',
    'ALTER TABLE payments.ledger_transactions ENABLE REPLICA TRIGGER ledger_writes_entries',
    'DROP TRIGGER ledger_entries_come_with_transactions ON payments.ledger_entries',
    `CREATE OR REPLACE FUNCTION payments.ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    'ALTER TABLE payments.ledger_transactions DROP CONSTRAINT ledger_transactions_zero',
    `CREATE OR REPLACE FUNCTION payments.ledger_balances(currencies text[], amounts bigint[]) RETURNS boolean
     LANGUAGE plpgsql AS 'BEGIN RETURN true; END'`,
  ])('that nobody is on guard: %s', async (text) => {
    expect(checksOf(await verifyAfter((tx) => tx.query(text)))).toEqual(['unguarded'])
  })

  it('more than it tells, and says so', async () => {
    const text = `
      INSERT INTO payments.ledger_entries (account, transaction, line, ledger_account, currency, amount, state)
      SELECT 'acct_x', 'txn_' || i, 1, 'gateway', 'EUR', 1, 'posted' FROM generate_series(1, 500) AS i`
    const { problems, cut_short: cutShort } = await verifyAfter((tx) => corrupt(tx, text))
    expect(problems).toHaveLength(200)
    expect(cutShort).toEqual(['not_zero', 'entry_without_transaction'])
  })
})

it('docs/guides/payments/ledger.md has every check, and no other', async () => {
  const text = await readFile(new URL('../../../docs/guides/payments/ledger.md', import.meta.url), 'utf8')
  const section = text.split('## Proving it')[1]!.split('\n## ')[0]!
  expect([...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)).toEqual(Object.keys(CHECKS))
})

describe('the command', () => {
  const run = (args: readonly string[], cwd?: string) => {
    const program = compiled(new URL('./verify-cli.ts', import.meta.url))
    const { DATABASE_URL: _, ...others } = process.env
    const database = cwd === undefined && { DATABASE_URL: pool.options.connectionString }
    return new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const options = { env: { ...others, ...database }, ...(cwd !== undefined && { cwd }) }
      execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stdout, stderr }),
      )
    })
  }

  it('ends with 0, and with 1 and a list of what is wrong', async () => {
    expect(await run([])).toEqual({
      code: 0,
      stdout: '6 transactions, 12 entries: the ledger is right\n',
      stderr: '',
    })
    await transact(pool, (tx) =>
      corrupt(tx, `DELETE FROM payments.ledger_transactions WHERE kind = 'refund'`),
    )
    const { code, stdout } = await run(['--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      problems: [{ check: 'entry_without_transaction' }, {}],
    })
  })

  it('ends with 2 where it could not look, and makes no database of its own', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'payments-verify-'))
    cleanUpLater(() => rm(folder, { recursive: true }))
    expect(await run([], folder)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Set DATABASE_URL'),
    })
    expect(await run(['--yes'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
  })
})
