import { eq } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { bigint, date, jsonb, numeric, pgTable, serial, text, timestamp } from 'drizzle-orm/pg-core'
import { poolOf } from 'onlyonce/orm'
import pg from 'pg'
import { type Session, type Stack, VALUES } from '../stack.ts'

const entries = pgTable('entries', {
  id: serial().primaryKey(),
  note: text().notNull(),
  amount: numeric(),
  big: bigint({ mode: 'bigint' }),
  data: jsonb(),
  at: timestamp({ withTimezone: true }),
  day: date(),
})

function sessionOn(db: Pick<NodePgDatabase, 'insert' | 'select' | 'transaction'>): Session {
  return {
    write: (note) => db.insert(entries).values({ note }),
    async types(note) {
      const { amount, big, data, at, day } = VALUES
      await db.insert(entries).values({ note, amount, big: BigInt(big), data, at: new Date(at), day })
      const [row] = await db.select().from(entries).where(eq(entries.note, note))
      return row!
    },
    nested: (work) => db.transaction((inner) => work(sessionOn(inner))),
  }
}

export const drizzleStack: Stack = {
  name: 'Drizzle',
  package: 'drizzle-orm',
  line: 'const db = drizzle(poolOf(tx))',
  file: 'drizzle.ts',
  async open(url) {
    const pool = new pg.Pool({ connectionString: url })
    return {
      alone: sessionOn(drizzle(pool)),
      on(tx, work) {
        const db = drizzle(poolOf(tx))
        return work(sessionOn(db))
      },
      close: () => pool.end(),
    }
  },
}
