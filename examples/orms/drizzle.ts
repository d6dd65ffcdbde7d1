/**
 * Transfers in Express and Drizzle: both accounts, the transfer and the reply are one commit. In a project of your own, import from 'onlyonce', 'onlyonce/express' and
 * 'onlyonce/orm' instead of from src/.
 */
import { and, eq, gte, sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text, uuid } from 'drizzle-orm/pg-core'
import express, { type Express } from 'express'
import { idempotent } from '../../src/http/adapters/express/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import { poolOf } from '../../src/orm/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'

export const TABLES = `
  CREATE TABLE wallets (owner text PRIMARY KEY, amount int NOT NULL);
  CREATE TABLE payouts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner text NOT NULL, amount int NOT NULL)`

const wallets = pgTable('wallets', { owner: text().primaryKey(), amount: integer().notNull() })
const payouts = pgTable('payouts', {
  id: uuid().primaryKey().defaultRandom(),
  owner: text().notNull(),
  amount: integer().notNull(),
})

/** A layer that knows nothing of keys: it is given the database to work on. */
async function payOut(db: NodePgDatabase, owner: string, amount: number) {
  // A transaction of Drizzle's own: here it is a savepoint in that of the request.
  return await db.transaction(async (tx) => {
    const taken = await tx
      .update(wallets)
      .set({ amount: sql`${wallets.amount} - ${amount}` })
      .where(and(eq(wallets.owner, owner), gte(wallets.amount, amount)))
      .returning()
    if (taken.length === 0) return null
    const [payout] = await tx.insert(payouts).values({ owner, amount }).returning()
    return payout!
  })
}

export function makeApp(once: Onlyonce<PostgresTx>): Express {
  const app = express()
  // Your own authentication says whose request it is.
  const account = (request: express.Request) => request.get('x-demo-account')
  const layer = idempotent(once, { account, protect: 'transaction' })
  app.post('/payouts', layer, express.json(), async (request, response) => {
    const { tx, account: owner } = request.idempotency!
    const db = drizzle(poolOf(tx))
    const payout = await payOut(db, owner, request.body.amount)
    if (payout === null) response.status(402).json({ error: 'not enough' })
    else response.status(201).json(payout)
  })
  return app
}
