import { PrismaPg } from '@prisma/adapter-pg'
import { poolOf } from 'onlyonce/orm'
import { type Prisma, PrismaClient } from '../node_modules/.onlyonce/prisma/client.ts'
import { type Session, type Stack, VALUES } from '../stack.ts'

function sessionOn(db: PrismaClient | Prisma.TransactionClient): Session {
  return {
    write: (note) => db.entry.create({ data: { note } }),
    async types(note) {
      const { amount, big, data, at, day } = VALUES
      const written = {
        note,
        amount,
        big: BigInt(big),
        data: data as Prisma.InputJsonValue,
        at,
        day: new Date(day),
      }
      await db.entry.create({ data: written })
      const row = await db.entry.findFirstOrThrow({ where: { note } })
      return { amount: row.amount, big: row.big, data: row.data, at: row.at, day: row.day }
    },
    nested: (work) => (db as PrismaClient).$transaction((inner) => work(sessionOn(inner))),
  }
}

export const prismaStack: Stack = {
  name: 'Prisma',
  package: '@prisma/client',
  line: 'const prisma = new PrismaClient({ adapter: new PrismaPg(poolOf(tx)) })',
  file: 'prisma.ts',
  async open(url) {
    const alone = new PrismaClient({ adapter: new PrismaPg(url) })
    return {
      alone: sessionOn(alone),
      on(tx, work) {
        const prisma = new PrismaClient({ adapter: new PrismaPg(poolOf(tx)) })
        return work(sessionOn(prisma))
      },
      close: () => alone.$disconnect(),
    }
  },
}
