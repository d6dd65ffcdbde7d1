import { type SqlEntityManager as EntityManager, EntitySchema, MikroORM } from '@mikro-orm/postgresql'
import { mikroormTransaction } from 'onlyonce/orm'
import { type Session, type Stack, VALUES } from '../stack.ts'

class Entry {
  id!: number
  note!: string
  amount?: string
  big?: bigint
  data?: unknown
  at?: Date
  day?: string
}

const schema = new EntitySchema<Entry>({
  class: Entry,
  tableName: 'entries',
  properties: {
    id: { type: 'number', primary: true },
    note: { type: 'text' },
    amount: { type: 'decimal', columnType: 'numeric', nullable: true },
    big: { type: 'bigint', nullable: true },
    data: { type: 'json', nullable: true },
    at: { type: 'datetime', columnType: 'timestamptz', nullable: true },
    day: { type: 'date', nullable: true },
  },
})

function sessionOn(em: EntityManager): Session {
  return {
    write: (note) => em.insert(Entry, { note }),
    async types(note) {
      const { amount, big, data, at, day } = VALUES
      em.create(Entry, { note, amount, big: BigInt(big), data, at: new Date(at), day })
      await em.flush()
      em.clear()
      const row = await em.findOneOrFail(Entry, { note })
      return { amount: row.amount, big: row.big, data: row.data, at: row.at, day: row.day }
    },
    nested: (work) => em.transactional((inner) => work(sessionOn(inner as EntityManager))),
  }
}

export const mikroormStack: Stack = {
  name: 'MikroORM',
  package: '@mikro-orm/postgresql',
  line: 'mikroormTransaction(tx, orm.em, (em) => …)',
  file: 'mikroorm.ts',
  async open(url) {
    const orm = await MikroORM.init({
      clientUrl: url,
      entities: [schema],
      discovery: { warnWhenNoEntities: false },
    })
    return {
      alone: sessionOn(orm.em.fork()),
      on(tx, work) {
        return mikroormTransaction(tx, orm.em, (em) => work(sessionOn(em)))
      },
      close: () => orm.close(),
    }
  },
}
