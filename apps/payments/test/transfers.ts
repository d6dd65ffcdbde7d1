import { randomUUID } from 'node:crypto'
import { type Onlyonce, type Op, type Operation, onlyonce, operation } from 'onlyonce'
import { outbox } from 'onlyonce/outbox'
import { type PostgresTx, postgres } from 'onlyonce/postgres'
import type pg from 'pg'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { createAccount } from '../accounts/index.ts'
import { migrate } from '../database/migrate.ts'
import { makeId } from '../ids.ts'
import { availableOf, captureLines, post } from '../ledger/index.ts'
import { type CreateTransfer, makeCreateTransfer } from '../transfers/index.ts'

/** Two accounts, one of them with money, and what moves it. */
export interface Till {
  readonly pool: pg.Pool
  readonly once: Onlyonce<PostgresTx>
  readonly createTransfer: Operation<CreateTransfer, unknown>
  /** One more front door, as another process would have. */
  open(operations?: readonly Operation<never, unknown>[]): Onlyonce<PostgresTx>
  /** A new account, `acct_…`, with so much in its balance. */
  addAccount(euros: number): Promise<string>
  available(accountId: string): Promise<number>
  /** Every line of the ledger of these accounts comes to zero, and nothing is on its way. */
  inTransit(...accountIds: string[]): Promise<number>
  events(accountId: string): Promise<readonly string[]>
}

export async function openTill(): Promise<Till> {
  const database: FreshDatabase = await freshDatabase()
  const pool = database.pool({ max: 10 })
  await migrate(pool)
  const open: Till['open'] = (operations = []) => {
    const once = onlyonce({
      store: postgres({ pool: database.pool({ max: 10 }) }),
      operations,
      secret: 'the-secret-of-the-tests-of-transfers-0123456789',
    })
    cleanUpLater(() => once.close({ maxMs: 1_000 }))
    return once
  }
  const once = open()
  const accounts = (ids: readonly string[]) => ids.map((id) => `${id}:test`)
  return {
    pool,
    once,
    open,
    createTransfer: makeCreateTransfer(outbox(once)),
    async addAccount(amount) {
      const { id } = await createAccount(pool, 'Somebody')
      const account = `${id}:test`
      const lines = captureLines({ amount, currency: 'EUR' })
      if (amount > 0)
        await post(pool, { account, kind: 'capture', source: makeId('cap'), state: 'posted', lines })
      return id
    },
    available: async (id) => Number(await availableOf(pool, `${id}:test`, 'EUR')),
    async inTransit(...ids) {
      const { rows } = await pool.query(
        `SELECT coalesce(sum(amount), 0)::int AS total FROM payments.ledger_entries
         WHERE ledger_account = 'transfers' AND account = ANY ($1)`,
        [accounts(ids)],
      )
      return rows[0].total
    },
    async events(id) {
      const { rows } = await pool.query('SELECT type FROM onlyonce.events WHERE account = $1 ORDER BY id', [
        `${id}:test`,
      ])
      return rows.map(({ type }) => type)
    },
  }
}

export function transferCall(
  from: string,
  destination: string,
  amount: number,
  changes: Partial<CreateTransfer> = {},
) {
  const input = {
    destination,
    amount,
    currency: 'EUR',
    reference: 'rent',
    metadata: { flat: '3' },
    ...changes,
  }
  return { account: `${from}:test`, key: randomUUID(), input }
}

/** The same operation, with something between its steps: `before` is awaited where a step, or `undo`, is about to begin. */
export function interrupted<Input, T>(
  { name, run }: Operation<Input, T>,
  before: (place: string) => Promise<void>,
): Operation<Input, unknown> {
  return operation(name, (op, input: Input) => {
    const transaction: Op['transaction'] = async (step, work, options) => {
      await before(step)
      return await op.transaction(step, work, options)
    }
    const undo: Op['undo'] = async (reply) => {
      await before('undo')
      return await op.undo(reply)
    }
    const watched = new Proxy(op, {
      get: (target, member) => {
        if (member === 'transaction') return transaction
        if (member === 'undo') return undo
        const value: unknown = Reflect.get(target, member, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    return run(watched, input)
  })
}

/** Waits for ever at one place, the first time that it comes there: its owner is gone for good. */
export function abandonAt(place: string): (here: string) => Promise<void> {
  let first = true
  return async (here) => {
    if (here !== place || !first) return
    first = false
    await new Promise(() => {})
  }
}
