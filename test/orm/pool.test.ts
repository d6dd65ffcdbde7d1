/** What a library sees through `poolOf(tx)` is what it sees through a pool of pg. */
import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { operation } from '../../src/index.ts'
import { driverOf, poolOf } from '../../src/orm/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { catchError, makeCall, openShop, type Shop } from '../contract/shop.ts'

let shop: Shop
let once: ReturnType<Shop['open']>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const within = <T>(work: (tx: PostgresTx) => Promise<T>) =>
  once.transaction(makeCall(), async (tx) => {
    // What is compared may be no JSON, so it leaves by the side.
    side = await work(tx)
  })
let side: unknown

async function onTransaction<T>(work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const { outcome } = await within((tx) => work(poolOf(tx)))
  expect(outcome).toBe('executed')
  return side as T
}

const TYPES = `SELECT 1.10::numeric AS numeric, 9007199254740993::int8 AS bigint, '{"a":[1]}'::jsonb AS json,
  '2026-03-29T01:30:00Z'::timestamptz AS at, '2026-03-29'::date AS day, ARRAY[1,2] AS list, '\\x00ff'::bytea AS bytes, NULL::text AS none`

/** Each gives something that can be compared. */
const USES: Readonly<Record<string, (pool: pg.Pool) => Promise<unknown>>> = {
  'a text': async (pool) => plain(await pool.query('SELECT 1 AS one, 2 AS two')),
  'a text with values': async (pool) => plain(await pool.query('SELECT $1::int + 1 AS sum', [41])),
  'types of columns': async (pool) => plain(await pool.query(TYPES)),
  'types of columns with values': async (pool) => plain(await pool.query(`${TYPES}, $1::text AS t`, ['a'])),
  'a query object': async (pool) => plain(await pool.query({ text: 'SELECT $1::int AS a', values: [1] })),
  'rows as lists': async (pool) => plain(await pool.query({ text: TYPES, rowMode: 'array' })),
  'parsers of its own': async (pool) =>
    plain(
      await pool.query({
        text: TYPES,
        types: { getTypeParser: () => (text: string) => `<${text}>` } as never,
      }),
    ),
  'members of a query object that are inherited': async (pool) =>
    plain(
      await pool.query(
        new (class {
          get text() {
            return 'SELECT $1::text AS a'
          }
          get values() {
            return ['b']
          }
        })() as pg.QueryConfig,
      ),
    ),
  'a statement with a name, twice': async (pool) => {
    const ask = (a: number) => pool.query({ name: 'again', text: 'SELECT $1::int AS a', values: [a] })
    return [plain(await ask(1)), plain(await ask(2))]
  },
  'several statements in one text': async (pool) =>
    ((await pool.query('SELECT 1 AS a; SELECT 2 AS b')) as unknown as pg.QueryResult[]).map(plain),
  'a callback': (pool) =>
    new Promise((resolve) => pool.query('SELECT 1 AS a', (error, result) => resolve([error, plain(result)]))),
  'a callback with values': (pool) =>
    new Promise((resolve) =>
      pool.query('SELECT $1::int AS a', [1], (error, result) => resolve([error, plain(result)])),
    ),
  'a callback of a client': (pool) =>
    new Promise((resolve, reject) =>
      pool.connect((error, client, release) => {
        if (client === undefined) return reject(error)
        client.query({ text: 'SELECT $1::int AS a', values: [1] }, (failure, result) => {
          release()
          resolve([failure, plain(result)])
        })
      }),
    ),
  'a mistake in the arguments': async (pool) => {
    const client = await pool.connect()
    const none = (() => {
      try {
        client.query(undefined as never)
      } catch (error) {
        return `${error}`
      }
    })()
    const values = await catchError(client.query('SELECT $1', 'a' as never))
    client.release()
    return [none, values.message]
  },
  'a transaction': async (pool) => {
    const client = await pool.connect()
    const commands = []
    for (const text of ['BEGIN', 'SELECT 1 AS a', 'SAVEPOINT a', 'ROLLBACK TO a', 'RELEASE a', 'COMMIT'])
      commands.push((await client.query(text)).command)
    for (const text of ['start transaction', 'begin', 'rollback;'])
      commands.push((await client.query(text)).command)
    client.release()
    return commands
  },
  'an error inside a transaction': async (pool) => {
    const client = await pool.connect()
    await client.query('BEGIN')
    const error = await catchError(client.query('SELECT 1 / 0'))
    const next = await catchError(client.query('SELECT 1'))
    const { command } = await client.query('ROLLBACK')
    const after = await client.query('SELECT 1 AS a')
    client.release()
    return [error instanceof pg.DatabaseError, error.code, error.severity, next.code, command, plain(after)]
  },
  'statements that are not awaited, in order': async (pool) => {
    const client = await pool.connect()
    const asked = ['BEGIN', 'SELECT 1 AS a', 'COMMIT', 'SELECT 2 AS a'].map((text) => client.query(text))
    const answers = (await Promise.all(asked)).map(plain)
    client.release()
    return answers
  },
  'a parser set on a client': async (pool) => {
    const client = await pool.connect()
    client.setTypeParser(20, (text) => BigInt(text))
    const answer = plain(await client.query('SELECT 1::int8 AS a'))
    const parsed = client.getTypeParser(20)('7')
    client.release(true)
    return [answer, parsed]
  },
  'escaping, and classes': async (pool) => {
    const client = await pool.connect()
    const escaped = [client.escapeIdentifier('a"b'), client.escapeLiteral("a'b")]
    client.release()
    return [escaped, pool instanceof pg.Pool, client instanceof pg.Client]
  },
  'events and counts': async (pool) => {
    const heard: string[] = []
    for (const event of ['connect', 'acquire', 'release', 'remove'] as const)
      pool.on(event, () => heard.push(event))
    const client = await pool.connect()
    const counts = [pool.totalCount, pool.idleCount, pool.waitingCount]
    client.on('error', () => {})
    client.on('notice', () => {})
    client.release()
    const idle = [pool.totalCount, pool.idleCount]
    const again = await pool.connect()
    const removed = new Promise((resolve) => pool.once('remove', resolve))
    again.release(true)
    await removed
    return [heard, counts, idle, pool.totalCount]
  },
  'a second release': async (pool) => {
    const client = await pool.connect()
    client.release()
    return `${await catchError(Promise.resolve().then(() => client.release()))}`
  },
}

function plain(result: pg.QueryResult): unknown {
  const { command, rowCount, rows, fields } = result
  return { command, rowCount, rows, fields: fields.map(({ name, dataTypeID }) => [name, dataTypeID]) }
}

describe('through poolOf(tx), as through a pool of pg', () => {
  test.each(Object.keys(USES))('%s', async (name) => {
    const use = USES[name]!
    const pool = shop.database.pool({ max: 1 })
    expect(await onTransaction(use)).toEqual(await use(pool))
  })

  test('it can be ended, and then takes no more', async () => {
    const use = async (pool: pg.Pool) => {
      await pool.query('SELECT 1')
      await pool.end()
      return [pool.ended, (await catchError(pool.query('SELECT 1'))).message]
    }
    expect(await onTransaction(use)).toEqual(await use(shop.database.pool({ max: 1 })))
  })

  test('a callback that throws is heard by the process, and the statement counts as done', async () => {
    const heard = new Promise((resolve) => process.once('uncaughtException', resolve))
    const others = process.listeners('uncaughtException').filter((listen) => listen.length === 2)
    for (const listen of others) process.off('uncaughtException', listen)
    const { rowCount } = await onTransaction(async (pool) => {
      pool.query('SELECT 1', () => {
        throw new Error('by the callback')
      })
      return pool.query('SELECT 1')
    })
    expect(`${await heard}`).toBe('Error: by the callback')
    for (const listen of others) process.on('uncaughtException', listen)
    expect(rowCount).toBe(1)
  })
})

describe('driverOf(tx)', () => {
  test('makes pools and clients that ignore where they are told to connect, and heed their parsers', async () => {
    const types = { getTypeParser: () => (text: string) => `<${text}>` } as unknown as pg.CustomTypesConfig
    await within(async (tx) => {
      const driver = driverOf(tx)
      const nowhere = { host: 'nowhere.invalid', port: 1, types }
      const ask = 'SELECT pg_current_xact_id()::text AS id'
      const { rows } = await tx.query<{ id: string }>(ask)
      const pool = new driver.Pool(nowhere)
      expect((await pool.query(ask)).rows).toEqual([{ id: `<${rows[0]!.id}>` }])
      const client = new driver.Client(nowhere)
      await client.connect()
      expect((await client.query(ask)).rows).toEqual([{ id: `<${rows[0]!.id}>` }])
      expect((await catchError(client.connect())).message).toMatch('cannot reuse')
      await client.end()
      expect((await catchError(client.query(ask))).message).toMatch('closed')
      expect(driver.types).toBe(pg.types)
    })
  })
})

describe('poolOf', () => {
  test('gives one pool for one transaction', async () => {
    await within(async (tx) => expect(poolOf(tx)).toBe(poolOf(tx)))
  })

  test.each([
    ['a pool', () => shop.observer],
    ['a client', () => new pg.Client()],
    ['nothing', () => undefined],
  ])('refuses %s', (_, given) => {
    expect(() => poolOf(given() as never)).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  })

  test('leads to the transaction also where a library makes a pool of its own out of it', async () => {
    const { outcome } = await within(async (tx) => {
      const copy = new pg.Pool({ ...(poolOf(tx) as unknown as pg.PoolConfig) })
      await copy.query("INSERT INTO effects (note) VALUES ('copied pool')")
      expect(await shop.countEffects('copied pool')).toBe(0)
    })
    expect(outcome).toBe('executed')
    expect(await shop.countEffects('copied pool')).toBe(1)
  })

  test('works for steps of operations', async () => {
    const note = 'by a step'
    const step = operation('orm.step', (op, _: { n: number }) =>
      op.transaction('written', async (tx) => {
        await poolOf(tx as PostgresTx).query('INSERT INTO effects (note) VALUES ($1)', [note])
        return { done: true }
      }),
    )
    const { account, key } = makeCall()
    const result = await once.run(step, { account, key, input: { n: 1 } })
    expect(result).toMatchObject({ outcome: 'executed', value: { done: true } })
    expect(await shop.countEffects(note)).toBe(1)
  })

  test('takes no more once the transaction is over', async () => {
    let pool: pg.Pool | undefined
    await within(async (tx) => {
      pool = poolOf(tx)
      await pool.query('SELECT 1')
    })
    expect(await catchError(pool!.query('SELECT 1'))).toMatchObject({ code: 'transaction_over' })
  })
})
