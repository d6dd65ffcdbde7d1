/** Transactions that a library begins inside the transaction of a protected request. */
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { TransactionCall } from '../../src/index.ts'
import { poolOf } from '../../src/orm/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop, settleWithin } from '../contract/shop.ts'

let shop: Shop
let once: ReturnType<Shop['open']>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const onPool = (
  work: (pool: pg.Pool, tx: PostgresTx) => Promise<unknown>,
  call: Pick<TransactionCall, 'isolation' | 'deadlineMs'> = {},
) =>
  once.transaction({ ...makeCall(), ...call }, async (tx) => {
    await work(poolOf(tx), tx)
  })

/** As ORMs do it. */
async function nest<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    try {
      const value = await work(client)
      await client.query('COMMIT')
      return value
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    }
  } finally {
    client.release()
  }
}

const counts = (...notes: string[]) => Promise.all(notes.map((note) => shop.countEffects(note)))

describe('a nested transaction', () => {
  test('is committed with the request, and not before', async () => {
    await onPool(async (pool) => {
      await nest(pool, (client) => leaveEffect(client, 'n1'))
      expect(await counts('n1')).toEqual([0])
    })
    expect(await counts('n1')).toEqual([1])
  })

  test('is undone with the request, although it was committed', async () => {
    const error = await catchError(
      onPool(async (pool) => {
        await nest(pool, (client) => leaveEffect(client, 'n2'))
        throw new Error('too bad')
      }),
    )
    expect(error.message).toBe('too bad')
    expect(await counts('n2')).toEqual([0])
  })

  test('is rolled back alone, also after a failed statement, and the rest goes on', async () => {
    const { outcome } = await onPool(async (pool) => {
      await leaveEffect(pool, 'n3 before')
      const error = await catchError(
        nest(pool, async (client) => {
          await leaveEffect(client, 'n3 inside')
          await client.query('SELECT 1 / 0')
        }),
      )
      expect(error.code).toBe('22012')
      await leaveEffect(pool, 'n3 after')
    })
    expect(outcome).toBe('executed')
    expect(await counts('n3 before', 'n3 inside', 'n3 after')).toEqual([1, 0, 1])
  })

  test('whose failed statement was ignored cannot be committed, and loses nothing in silence', async () => {
    const error = await catchError(
      onPool((pool) =>
        nest(pool, async (client) => {
          await leaveEffect(client, 'n4')
          await client.query('SELECT 1 / 0').catch(() => {})
        }),
      ),
    )
    expect(error).toMatchObject({ code: 'nested_transaction_failed', cause: { code: '25P02' } })
    expect(await counts('n4')).toEqual([0])
  })

  test.each([undefined, true, new Error('broken')])(
    'that its client was given back with (%s) is undone, and others go on',
    async (how) => {
      const [inside, after] = [`n5 inside ${how}`, `n5 after ${how}`]
      await onPool(async (pool) => {
        const client = await pool.connect()
        await client.query('BEGIN')
        void leaveEffect(client, inside)
        client.release(how)
        await leaveEffect(pool, after)
      })
      expect(await counts(inside, after)).toEqual([0, 1])
    },
  )

  test('that the work does not await is waited for as a whole', async () => {
    await onPool(async (pool) => {
      void nest(pool, async (client) => {
        await leaveEffect(client, 'n6')
        await new Promise(setImmediate)
        await leaveEffect(client, 'n6')
      })
      void leaveEffect(pool, 'n6')
    })
    expect(await counts('n6')).toEqual([3])
  })

  test('may hold calls on tx itself, which are undone with it', async () => {
    await onPool(async (pool, tx) => {
      await catchError(
        nest(pool, async () => {
          await once.within(tx, makeCall({ operation: 'inner' }), async (inner) => leaveEffect(inner, 'n7'))
          throw new Error('too bad')
        }),
      )
    })
    expect(await counts('n7')).toEqual([0])
  })
})

describe('two nested transactions at once', () => {
  test('run one after the other, and undo nothing of each other', async () => {
    const order: string[] = []
    const one = (pool: pg.Pool, name: string, fails: boolean) =>
      nest(pool, async (client) => {
        order.push(`${name} begins`)
        await leaveEffect(client, `p1 ${name}`)
        await new Promise(setImmediate)
        await client.query('SELECT 1')
        order.push(`${name} ends`)
        if (fails) throw new Error(name)
      }).catch(() => {})
    await onPool(async (pool) => {
      await Promise.all([
        one(pool, 'a', true),
        leaveEffect(pool, 'p1 beside'),
        one(pool, 'b', false),
        one(pool, 'c', true),
        leaveEffect(pool, 'p1 beside'),
      ])
    })
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
    expect(await counts('p1 a', 'p1 b', 'p1 c', 'p1 beside')).toEqual([0, 1, 0, 2])
  })

  test('a statement outside that is begun meanwhile is not undone with it', async () => {
    await onPool(async (pool) => {
      let beside: Promise<unknown> | undefined
      await catchError(
        nest(pool, async (client) => {
          beside = leaveEffect(pool, 'p3')
          await leaveEffect(client, 'p3 inside')
          throw new Error('too bad')
        }),
      )
      await beside
    })
    expect(await counts('p3', 'p3 inside')).toEqual([1, 0])
  })

  test('the second is refused where the first waits for it, and the first goes on', async () => {
    const { outcome } = await settleWithin(
      20_000,
      onPool((pool) =>
        nest(pool, async (client) => {
          await leaveEffect(client, 'p2 first')
          const waiting = [
            nest(pool, (other) => leaveEffect(other, 'p2 second')),
            leaveEffect(pool, 'p2 outside'),
          ]
          for (const error of await Promise.all(waiting.map(catchError)))
            expect(error.code).toBe('nested_transaction_busy')
          await leaveEffect(client, 'p2 first')
        }),
      ),
    )
    expect(outcome).toBe('executed')
    expect(await counts('p2 first', 'p2 second', 'p2 outside')).toEqual([2, 0, 0])
  })
})

describe('what the transaction of a protected request cannot do', () => {
  test.each([
    ['LISTEN a', 'statement_refused'],
    ['COPY effects FROM STDIN', 'statement_refused'],
    ['SET search_path TO a', 'statement_refused'],
    ['SELECT pg_advisory_lock(1)', 'statement_refused'],
    ['COMMIT', 'transaction_control_refused'],
    ['ROLLBACK', 'transaction_control_refused'],
    ['SAVEPOINT a', 'transaction_control_refused'],
    ['SELECT 1; COMMIT', 'transaction_control_refused'],
    ['BEGIN ISOLATION LEVEL SERIALIZABLE', 'isolation_refused'],
    ['SET TRANSACTION ISOLATION LEVEL REPEATABLE READ', 'isolation_refused'],
    ['SET TRANSACTION READ ONLY', 'isolation_refused'],
  ])('%s is refused, and nothing is harmed', async (text, code) => {
    const { outcome } = await onPool(async (pool) => {
      await leaveEffect(pool, text)
      expect(await catchError(pool.query(text))).toMatchObject({ code })
      const heard = await new Promise((resolve) => pool.query(text, (error) => resolve(error)))
      expect(heard).toMatchObject({ code })
      await leaveEffect(pool, text)
    })
    expect(outcome).toBe('executed')
    expect(await counts(text)).toEqual([2])
  })

  test('a cursor is told so', async () => {
    await onPool(async (pool) => {
      const client = await pool.connect()
      const told = await new Promise((resolve) => {
        const cursor = { submit() {}, handleError: resolve }
        expect(client.query(cursor as unknown as pg.Submittable)).toBe(cursor)
      })
      expect(told).toMatchObject({ code: 'statement_refused' })
      client.release()
    })
  })

  test('the isolation level that it has may be asked for', async () => {
    await onPool(
      async (pool) => {
        await nest(
          pool,
          (client) => leaveEffect(client, 'i1'),
          'START TRANSACTION ISOLATION LEVEL SERIALIZABLE',
        )
        const client = await pool.connect()
        await client.query('BEGIN')
        expect(await client.query('SET TRANSACTION ISOLATION LEVEL SERIALIZABLE')).toMatchObject({
          command: 'SET',
        })
        await client.query('COMMIT')
        client.release()
        const error = await catchError(nest(pool, async () => {}, 'BEGIN ISOLATION LEVEL READ COMMITTED'))
        expect(error.code).toBe('isolation_refused')
      },
      { isolation: 'serializable' },
    )
    expect(await counts('i1')).toEqual([1])
  })

  test('a nested transaction that only reads ends with itself', async () => {
    await onPool(async (pool) => {
      const error = await catchError(nest(pool, (client) => leaveEffect(client, 'i2'), 'BEGIN READ ONLY'))
      expect(error.code).toBe('25006')
      await nest(pool, (client) => client.query('SELECT 1'), 'BEGIN READ ONLY')
      await leaveEffect(pool, 'i2')
    })
    expect(await counts('i2')).toEqual([1])
  })

  test('one name for two texts does not collide', async () => {
    await onPool(async (pool) => {
      for (const text of ['SELECT 1 AS a', 'SELECT 2 AS a'])
        expect((await pool.query({ name: 'same', text })).rows).toEqual((await pool.query(text)).rows)
    })
  })
})
