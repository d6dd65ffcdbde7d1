import { sequelizeTransaction } from 'onlyonce/orm'
import { DataTypes, type Model, type ModelStatic, Sequelize, type Transaction } from 'sequelize'
import { type Session, type Stack, VALUES } from '../stack.ts'

function sessionOn(
  sequelize: Sequelize,
  Entry: ModelStatic<Model>,
  transaction: Transaction | null,
): Session {
  return {
    write: (note) => Entry.create({ note }, { transaction }),
    async types(note) {
      await Entry.create({ ...VALUES, note }, { transaction })
      const row = await Entry.findOne({ where: { note }, transaction, rejectOnEmpty: true })
      const { amount, big, data, at, day } = row.get()
      return { amount, big, data, at, day }
    },
    nested: (work) =>
      sequelize.transaction({ transaction }, (inner) => work(sessionOn(sequelize, Entry, inner))),
  }
}

export const sequelizeStack: Stack = {
  name: 'Sequelize',
  package: 'sequelize',
  line: 'sequelizeTransaction(tx, sequelize, (transaction: Transaction) => …)',
  file: 'sequelize.ts',
  second: 'refused',
  async open(url) {
    const sequelize = new Sequelize(url, { logging: false })
    const columns = {
      note: DataTypes.TEXT,
      amount: DataTypes.DECIMAL,
      big: DataTypes.BIGINT,
      data: DataTypes.JSONB,
      at: DataTypes.DATE,
      day: DataTypes.DATEONLY,
    }
    const Entry = sequelize.define('Entry', columns, { tableName: 'entries', timestamps: false })
    return {
      alone: sessionOn(sequelize, Entry, null),
      on(tx, work) {
        return sequelizeTransaction(tx, sequelize, (transaction: Transaction) =>
          work(sessionOn(sequelize, Entry, transaction)),
        )
      },
      close: () => sequelize.close(),
    }
  },
}
