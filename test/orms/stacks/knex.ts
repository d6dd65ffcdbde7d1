import knexModule, { type Knex } from 'knex'
import { poolOf } from 'onlyonce/orm'
import { type Session, type Stack, VALUES } from '../stack.ts'

const knex = knexModule.default ?? knexModule

function sessionOn(db: Knex): Session {
  return {
    write: (note) => db('entries').insert({ note }),
    async types(note) {
      await db('entries').insert({ ...VALUES, note })
      return await db('entries').select('amount', 'big', 'data', 'at', 'day').where({ note }).first()
    },
    nested: (work) => db.transaction((inner) => work(sessionOn(inner))),
  }
}

export const knexStack: Stack = {
  name: 'Knex',
  package: 'knex',
  line: "const db = knex({ client: 'pg', connectionPool: poolOf(tx), version: '17' })",
  file: 'knex.ts',
  async open(url) {
    const alone = knex({ client: 'pg', connection: url })
    return {
      alone: sessionOn(alone),
      on(tx, work) {
        const db = knex({ client: 'pg', connectionPool: poolOf(tx), version: '17' })
        return work(sessionOn(db))
      },
      close: () => alone.destroy(),
    }
  },
}
