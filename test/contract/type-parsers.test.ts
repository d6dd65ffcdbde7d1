import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { catchError, makeCall, openShop, type Shop } from './shop.ts'

const INT4 = 23
const TEXT = 25

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

/** A pool whose rows are read with another parser for one type, as pg.types.setTypeParser does for all pools of a process. */
const openWith = (oid: number, parse: (text: string) => unknown) => {
  const getTypeParser = (asked: number, format?: 'text') =>
    asked === oid ? parse : pg.types.getTypeParser(asked, format)
  const pool = shop.database.pool({ max: 4, types: { getTypeParser } as never })
  return { pool, once: shop.open({ pool }) }
}

test.each([
  ['a BigInt', BigInt],
  ['a text', (text: string) => text],
] as const)('integers that are read as %s do no harm', async (_, parse) => {
  const { once } = openWith(INT4, parse)
  await once.start()
  expect((await once.transaction(makeCall(), async () => 1)).outcome).toBe('executed')
})

test.each([
  ['integers', INT4],
  ['text', TEXT],
] as const)('a parser that makes an object of %s is named at the start', async (type, oid) => {
  const { once } = openWith(oid, (text) => ({ text }))
  const error = await catchError(once.start())
  expect(error).toMatchObject({ code: 'option_invalid', message: expect.stringContaining(type) })
  expect(error.message).toContain('setTypeParser')
})

test('a parser of the caller that makes an object of texts is named by within, and harms nothing of the caller', async () => {
  const { pool } = openWith(TEXT, (text) => ({ text }))
  const client = await pool.connect()
  await client.query('BEGIN')
  const error = await catchError(shop.open().within(client, makeCall(), async () => 1))
  expect(error).toMatchObject({ code: 'option_invalid', message: expect.stringContaining('setTypeParser') })
  await client.query('SELECT 1')
  await client.query('COMMIT')
  client.release()
})
