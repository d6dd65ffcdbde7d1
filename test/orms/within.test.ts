/** `once.within` in a transaction that an ORM leads. */
import { randomUUID } from 'node:crypto'
import { PrismaPg } from '@prisma/adapter-pg'
import { drizzle } from 'drizzle-orm/node-postgres'
import knexModule from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import type { Queryable } from 'onlyonce'
import { fromDrizzle, fromKnex, fromKysely, fromPrisma, fromTypeorm } from 'onlyonce/orm'
import pg from 'pg'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catchError, makeCall, openShop, type Shop } from '../contract/shop.ts'
import { PrismaClient } from './node_modules/.onlyonce/prisma/client.ts'

const knex = knexModule.default ?? knexModule

let shop: Shop
let once: ReturnType<Shop['open']>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

/** Begins a transaction of the ORM, and runs the function in it. */
type Transact = (work: (tx: Queryable) => Promise<void>) => Promise<unknown>

const ORMS: Readonly<
  Record<string, (url: string) => Promise<{ transact: Transact; close(): Promise<unknown> }>>
> = {
  async Prisma(url) {
    const prisma = new PrismaClient({ adapter: new PrismaPg(url) })
    return {
      transact: (work) => prisma.$transaction((tx) => work(fromPrisma(tx))),
      close: () => prisma.$disconnect(),
    }
  },
  async Drizzle(url) {
    const pool = new pg.Pool({ connectionString: url })
    return {
      transact: (work) => drizzle(pool).transaction((tx) => work(fromDrizzle(tx))),
      close: () => pool.end(),
    }
  },
  async Kysely(url) {
    const db = new Kysely<object>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url }) }),
    })
    return {
      transact: (work) => db.transaction().execute((tx) => work(fromKysely(tx))),
      close: () => db.destroy(),
    }
  },
  async Knex(url) {
    const db = knex({ client: 'pg', connection: url })
    return { transact: (work) => db.transaction((tx) => work(fromKnex(tx))), close: () => db.destroy() }
  },
  async TypeORM(url) {
    const dataSource = await new DataSource({ type: 'postgres', url }).initialize()
    return {
      transact: (work) => dataSource.transaction((manager) => work(fromTypeorm(manager))),
      close: () => dataSource.destroy(),
    }
  },
}

describe.each(Object.keys(ORMS))('in a transaction of %s', (name) => {
  let orm: Awaited<ReturnType<(typeof ORMS)[string]>>
  beforeAll(async () => {
    orm = await ORMS[name]!(shop.database.url)
  })
  afterAll(() => orm?.close())

  test('the work takes effect once, with the commit of the ORM, and is replayed', async () => {
    const call = makeCall()
    const note = randomUUID()
    for (const outcome of ['executed', 'replayed']) {
      let result: unknown
      await orm.transact(async (tx) => {
        result = await once.within(tx, call, async (inner) => {
          await inner.query('INSERT INTO effects (note) VALUES ($1)', [note])
          return { note, when: new Date(0) }
        })
      })
      expect(result).toEqual({ outcome, value: { note, when: '1970-01-01T00:00:00.000Z' } })
    }
    expect(await shop.countEffects(note)).toBe(1)
  })

  test('key and work are undone with the transaction of the ORM', async () => {
    const call = makeCall()
    const note = randomUUID()
    const error = await catchError(
      orm.transact(async (tx) => {
        await once.within(tx, call, (inner) =>
          inner.query('INSERT INTO effects (note) VALUES ($1)', [note]).then(() => 1),
        )
        throw new Error('too bad')
      }),
    )
    expect(error.message).toBe('too bad')
    expect(await shop.countEffects(note)).toBe(0)
    expect((await once.explain(call)).state).toBe('none')
  })

  test('work that throws is undone alone', async () => {
    const [note, after] = [randomUUID(), randomUUID()]
    await orm.transact(async (tx) => {
      const work = async (inner: Queryable) => {
        await inner.query('INSERT INTO effects (note) VALUES ($1)', [note])
        throw new Error('too bad')
      }
      expect((await catchError(once.within(tx, makeCall(), work))).message).toBe('too bad')
      await tx.query('INSERT INTO effects (note) VALUES ($1)', [after])
    })
    expect([await shop.countEffects(note), await shop.countEffects(after)]).toEqual([0, 1])
  })
})
