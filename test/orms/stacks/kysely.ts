import { type Generated, Kysely, PostgresDialect } from 'kysely'
import { poolOf } from 'onlyonce/orm'
import pg from 'pg'
import { type Session, type Stack, VALUES } from '../stack.ts'

interface Tables {
  entries: {
    id: Generated<number>
    note: string
    amount?: string
    big?: string
    data?: unknown
    at?: string | Date
    day?: string | Date
  }
}

function sessionOn(db: Kysely<Tables>): Session {
  return {
    write: (note) => db.insertInto('entries').values({ note }).execute(),
    async types(note) {
      const data = JSON.stringify(VALUES.data)
      await db
        .insertInto('entries')
        .values({ ...VALUES, data, note })
        .execute()
      const columns = ['amount', 'big', 'data', 'at', 'day'] as const
      const row = await db
        .selectFrom('entries')
        .select(columns)
        .where('note', '=', note)
        .executeTakeFirstOrThrow()
      return row as Awaited<ReturnType<Session['types']>>
    },
    nested: (work) => db.transaction().execute((inner) => work(sessionOn(inner))),
  }
}

export const kyselyStack: Stack = {
  name: 'Kysely',
  package: 'kysely',
  line: 'const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: poolOf(tx) }) })',
  file: 'kysely.ts',
  async open(url) {
    const alone = new Kysely<Tables>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
    })
    return {
      alone: sessionOn(alone),
      on(tx, work) {
        const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: poolOf(tx) }) })
        return work(sessionOn(db))
      },
      close: () => alone.destroy(),
    }
  },
}
