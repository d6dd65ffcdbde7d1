import { beforeAll, describe, expect, test } from 'vitest'
import { leaveEffect, makeBarrier, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

async function readBalance(name: string): Promise<number> {
  const { rows } = await shop.observer.query('SELECT amount FROM balances WHERE name = $1', [name])
  return rows[0].amount
}

describe.each(POOLERS)('isolation, with pooler %s', (pooler) => {
  test.each([
    [undefined, 'read committed'],
    ['read committed', 'read committed'],
    ['repeatable read', 'repeatable read'],
    ['serializable', 'serializable'],
  ] as const)('%s is what the function gets', async (isolation, shown) => {
    const once = shop.open({ store: { pooler }, poolOptions: { max: 1 } })
    const result = await once.transaction(
      { ...makeCall(), ...(isolation === undefined ? {} : { isolation }) },
      async (tx) => (await tx.query('SHOW transaction_isolation')).rows[0]!.transaction_isolation,
    )
    expect(result).toEqual({ outcome: 'executed', value: shown })
    // The next transaction on the same connection is as it would have been.
    const next = await once.transaction(
      makeCall(),
      async (tx) => (await tx.query('SHOW transaction_isolation')).rows[0]!.transaction_isolation,
    )
    expect(next).toEqual({ outcome: 'executed', value: 'read committed' })
  })

  test.each(['repeatable read', 'serializable'] as const)(
    '%s: a row that changed meanwhile (40001) runs the function again',
    async (isolation) => {
      const once = shop.open({ store: { pooler } })
      const call = makeCall()
      const before = await readBalance('alice')
      const codes: string[] = []
      let runs = 0
      const result = await once.transaction({ ...call, isolation }, async (tx) => {
        runs += 1
        await leaveEffect(tx, call.key)
        const { rows } = await tx.query("SELECT amount FROM balances WHERE name = 'alice'")
        if (runs <= 2)
          await shop.observer.query("UPDATE balances SET amount = amount + 1 WHERE name = 'alice'")
        try {
          await tx.query("UPDATE balances SET amount = $1 WHERE name = 'alice'", [rows[0]!.amount - 10])
        } catch (error) {
          codes.push((error as { code: string }).code)
          throw error
        }
        return runs
      })
      expect(codes).toEqual(['40001', '40001'])
      expect(result).toEqual({ outcome: 'executed', value: 3 })
      expect(await readBalance('alice')).toBe(before + 2 - 10)
      expect(await shop.countEffects(call.key)).toBe(1)
      expect((await once.transaction(call, async () => 0)).outcome).toBe('replayed')
    },
  )

  test('serializable: write skew is refused, at the latest by COMMIT, and both succeed in the end', async () => {
    const once = shop.open({ store: { pooler } })
    const note = makeCall().key
    const meet = makeBarrier(2)
    let runs = 0
    const work = () =>
      once.transaction({ ...makeCall(), isolation: 'serializable' }, async (tx) => {
        runs += 1
        const { rows } = await tx.query('SELECT count(*)::int AS count FROM effects WHERE note = $1', [note])
        await meet()
        await leaveEffect(tx, note)
        return rows[0]!.count
      })
    const results = await Promise.all([work(), work()])
    // As if one had run after the other: the first saw nothing, the second saw the first.
    expect(results.map((result) => 'value' in result && result.value).sort()).toEqual([0, 1])
    expect(await shop.countEffects(note)).toBe(2)
    expect(runs).toBeGreaterThan(2)
  })

  test('a deadlock (40P01) runs the function of its victim again', async () => {
    const once = shop.open({ store: { pooler } })
    const before = [await readBalance('alice'), await readBalance('bob')]
    const calls = [makeCall(), makeCall()]
    const meet = makeBarrier(2)
    const codes: string[] = []
    let runs = 0
    const work = (call: ReturnType<typeof makeCall>, names: readonly string[]) =>
      once.transaction(call, async (tx) => {
        runs += 1
        await leaveEffect(tx, call.key)
        try {
          for (const name of names) {
            await tx.query('UPDATE balances SET amount = amount - 1 WHERE name = $1', [name])
            await meet()
          }
        } catch (error) {
          codes.push((error as { code: string }).code)
          throw error
        }
      })
    const results = await Promise.all([work(calls[0]!, ['alice', 'bob']), work(calls[1]!, ['bob', 'alice'])])
    expect(results.map(({ outcome }) => outcome)).toEqual(['executed', 'executed'])
    expect(codes).toEqual(['40P01'])
    expect(runs).toBe(3)
    for (const { key } of calls) expect(await shop.countEffects(key)).toBe(1)
    expect([await readBalance('alice'), await readBalance('bob')]).toEqual(before.map((amount) => amount - 2))
  })

  test('a collision that the function hides from us runs it again as well', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let runs = 0
    const result = await once.transaction({ ...call, isolation: 'repeatable read' }, async (tx) => {
      runs += 1
      await leaveEffect(tx, call.key)
      await tx.query("SELECT amount FROM balances WHERE name = 'bob'")
      if (runs === 1) await shop.observer.query("UPDATE balances SET amount = amount + 1 WHERE name = 'bob'")
      try {
        await tx.query("UPDATE balances SET amount = amount + 1 WHERE name = 'bob'")
      } catch (error) {
        throw new Error('wrapped by a data layer', { cause: error })
      }
    })
    expect(result.outcome).toBe('executed')
    expect(runs).toBe(2)
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('collisions without end are an error that says so, and nothing has happened', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let runs = 0
    const error = await once
      .transaction({ ...call, isolation: 'repeatable read', deadlineMs: 15_000 }, async (tx) => {
        runs += 1
        await leaveEffect(tx, call.key)
        await shop.observer.query("UPDATE balances SET amount = amount + 1 WHERE name = 'bob'")
        await tx.query("UPDATE balances SET amount = amount + 1 WHERE name = 'bob'")
      })
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'serialization_failed', status: 503, retryable: true })
    expect(runs).toBeGreaterThan(1)
    expect(await shop.countEffects(call.key)).toBe(0)
  })
})
