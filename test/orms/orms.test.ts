/** Every ORM on the transaction of a protected request. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { catchError, makeBarrier, makeCall, openProxy, openShop, type Shop } from '../contract/shop.ts'
import { ENTRIES, type Ready, type Session } from './stack.ts'
import { STACKS } from './stacks.ts'

let shop: Shop
let once: ReturnType<Shop['open']>

beforeAll(async () => {
  shop = await openShop()
  await shop.observer.query(ENTRIES)
  once = shop.open()
  await once.start()
})

async function counts(...notes: string[]): Promise<number[]> {
  const text = 'SELECT count(*)::int AS count FROM entries WHERE note = $1'
  return await Promise.all(notes.map(async (note) => (await shop.observer.query(text, [note])).rows[0].count))
}

describe.each(STACKS)('$name', ({ open, second }) => {
  let orm: Ready
  beforeAll(async () => {
    orm = await open(shop.database.url)
  })
  afterAll(() => orm?.close())

  const protect = (work: (session: Session) => Promise<unknown>, call = makeCall(), door = once) =>
    door.transaction(call, async (tx) => {
      await orm.on(tx, work)
      return { done: true }
    })

  test('commits with the request, and not before', async () => {
    const note = randomUUID()
    const call = makeCall()
    const work = async (session: Session) => {
      await session.write(note)
      expect(await counts(note)).toEqual([0])
    }
    expect(await protect(work, call)).toMatchObject({ outcome: 'executed' })
    expect(await counts(note)).toEqual([1])
    expect(await protect(work, call)).toMatchObject({ outcome: 'replayed', value: { done: true } })
    expect(await counts(note)).toEqual([1])
  })

  test('is rolled back with the request', async () => {
    const note = randomUUID()
    const error = await catchError(
      protect(async (session) => {
        await session.write(note)
        throw new Error('too bad')
      }),
    )
    expect(error.message).toBe('too bad')
    expect(await counts(note)).toEqual([0])
  })

  test('rolls a nested transaction back alone, and commits another', async () => {
    const [before, undone, kept, after] = [1, 2, 3, 4].map(() => randomUUID()) as [
      string,
      string,
      string,
      string,
    ]
    await protect(async (session) => {
      await session.write(before)
      const error = await catchError(
        Promise.resolve(
          session.nested(async (inner) => {
            await inner.write(undone)
            throw new Error('too bad')
          }),
        ),
      )
      expect(error.message).toBe('too bad')
      await session.nested(async (inner) => {
        await inner.write(kept)
      })
      await session.write(after)
    })
    expect(await counts(before, undone, kept, after)).toEqual([1, 0, 1, 1])
  })

  test('runs two nested transactions at once so that neither undoes the other', async () => {
    const [undone, kept] = [randomUUID(), randomUUID()]
    const ends: PromiseSettledResult<unknown>[] = []
    await protect(async (session) => {
      const both = [
        session.nested(async (inner) => {
          await inner.write(undone)
          await inner.write(undone)
          throw new Error('too bad')
        }),
        session.nested(async (inner) => {
          await inner.write(kept)
          await inner.write(kept)
        }),
      ]
      ends.push(...(await Promise.allSettled(both)))
    })
    const refused = { status: 'rejected', reason: { code: 'nested_transaction_busy' } }
    expect(ends).toMatchObject([
      { status: 'rejected' },
      second === 'refused' ? refused : { status: 'fulfilled' },
    ])
    expect(await counts(undone, kept)).toEqual([0, second === 'refused' ? 0 : 2])
  })

  test('goes on after a statement that failed in a nested transaction', async () => {
    const note = randomUUID()
    await protect(async (session) => {
      await catchError(
        Promise.resolve(session.nested((inner) => inner.write(null as unknown as string) as Promise<void>)),
      )
      await session.write(note)
    })
    expect(await counts(note)).toEqual([1])
  })

  test('takes effect once where two processes have the same key', async () => {
    const note = randomUUID()
    const call = makeCall()
    const other = shop.open()
    await other.start()
    const meet = makeBarrier(2)
    const work = async (session: Session) => {
      await session.write(note)
      await meet()
    }
    const results = await Promise.all([protect(work, call), protect(work, call, other)])
    expect(results.map(({ outcome }) => outcome).sort()).toEqual(['executed', 'replayed'])
    expect(await counts(note)).toEqual([1])
  })

  test.each(['before', 'after'] as const)(
    'takes effect once where the connection is cut %s COMMIT',
    async (when) => {
      const { proxy, pool } = await openProxy(shop)
      const door = shop.open({ pool })
      await door.start()
      const note = randomUUID()
      const work = (session: Session) => session.write(note) as Promise<unknown>
      proxy.setFault({ kind: 'cut_at_commit', times: 1, when })
      expect(await protect(work, makeCall(), door)).toMatchObject({ outcome: 'executed' })
      expect(Object.values(proxy.stats.commitsCut).reduce((sum, one) => sum + one, 0)).toBe(1)
      expect(await counts(note)).toEqual([1])
    },
  )

  test('gives values of the same types as on its own pool', async () => {
    const [own, protectedNote] = [randomUUID(), randomUUID()]
    const alone = await orm.alone.types(own)
    let types: unknown
    await protect(async (session) => {
      types = await session.types(protectedNote)
    })
    const of = ({ amount, big, data, at, day }: typeof alone) => ({ amount, big, data, at, day })
    expect(of(types as typeof alone)).toEqual(of(alone))
    expect(Object.values(of(alone))).not.toContain(undefined)
  })
})
