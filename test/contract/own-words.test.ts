import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { migrate, postgres } from '../../src/store/postgres/index.ts'
import { catchError, makeCall, openShop, SECRET, type Shop } from './shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

test.each(['OO001', 'OO002', 'OO003', 'OO004'])(
  'an error of the work with the code %s is the word of the work, in a transaction and in a later step',
  async (code) => {
    const once = shop.open()
    const raise = `DO $$ BEGIN RAISE EXCEPTION 'limit exceeded' USING ERRCODE = '${code}'; END $$`
    let runs = 0
    const work = async (tx: { query(text: string): Promise<unknown> }) => {
      runs += 1
      await tx.query(raise)
    }
    expect(await catchError(once.transaction(makeCall(), work))).toMatchObject({
      code,
      message: 'limit exceeded',
    })
    expect(runs).toBe(1)
    const own = operation(`own.${code}`, async (op) => {
      await op.transaction('first', async (tx) => void (await tx.query('SELECT 1')))
      await op.transaction('second', work)
      return reply(201, 1)
    })
    const { operation: _, ...call } = makeCall()
    expect(await catchError(once.run(own, call))).toMatchObject({ code, message: 'limit exceeded' })
    expect(runs).toBe(2)
  },
)

test('a start that looks for the records of a key leaves no warning in the log of the server', async () => {
  const ring = (id: string) => ({ current: id, keys: { [id]: `${id}-0123456789-0123456789-0123456789` } })
  await shop.observer.query('DELETE FROM onlyonce.records')
  await shop.open({ secret: ring('warned_a') }).start()
  const pool = shop.database.pool({ max: 2 })
  const notices: (string | undefined)[] = []
  pool.on('connect', (client) => client.on('notice', ({ message }) => notices.push(message)))
  await shop.open({ secret: ring('warned_b'), pool, store: { lockWaitMaxMs: 1_234 } }).start()
  expect(notices).toEqual([])
})

test.each([
  ['an empty object', {}],
  ['a client', new pg.Client()],
  ['null', null],
])('%s in place of a pool is named', (_, pool) => {
  const open = () => onlyonce({ secret: SECRET, store: postgres({ pool: pool as never }) })
  expect(open).toThrowError(
    expect.objectContaining({ code: 'option_invalid', message: expect.stringMatching(/pool/) }),
  )
})

test('a folder of migrations that is no URL is named', async () => {
  const options = { schema: 'shop', mode: 'apply', folder: 'sql' as never } as const
  expect(await catchError(migrate(shop.observer, options))).toMatchObject({
    code: 'option_invalid',
    message: expect.stringContaining('folder must be a URL'),
  })
})
