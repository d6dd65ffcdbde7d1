import { typeormManager } from 'onlyonce/orm'
import { DataSource, type EntityManager, EntitySchema } from 'typeorm'
import { type Session, type Stack, VALUES } from '../stack.ts'

interface Entry {
  id?: number
  note: string
  amount?: string
  big?: string
  data?: unknown
  at?: Date
  day?: string
}

const Entry = new EntitySchema<Entry>({
  name: 'entries',
  columns: {
    id: { type: Number, primary: true, generated: true },
    note: { type: 'text' },
    amount: { type: 'numeric', nullable: true },
    big: { type: 'bigint', nullable: true },
    data: { type: 'jsonb', nullable: true },
    at: { type: 'timestamptz', nullable: true },
    day: { type: 'date', nullable: true },
  },
})

function sessionOn(manager: EntityManager): Session {
  return {
    write: (note) => manager.save(Entry, { note }),
    async types(note) {
      await manager.save(Entry, { ...VALUES, at: new Date(VALUES.at), note })
      const { amount, big, data, at, day } = await manager.findOneByOrFail(Entry, { note })
      return { amount, big, data, at, day }
    },
    nested: (work) => manager.transaction((inner) => work(sessionOn(inner))),
  }
}

export const typeormStack: Stack = {
  name: 'TypeORM',
  package: 'typeorm',
  line: 'const manager = typeormManager(tx, dataSource)',
  file: 'typeorm.ts',
  async open(url) {
    const dataSource = await new DataSource({ type: 'postgres', url, entities: [Entry] }).initialize()
    return {
      alone: sessionOn(dataSource.manager),
      on(tx, work) {
        const manager = typeormManager(tx, dataSource)
        return work(sessionOn(manager))
      },
      close: () => dataSource.destroy(),
    }
  },
}
