import { beforeAll, describe, expect, test } from 'vitest'
import { leaveEffect, makeBarrier, makeCall, makeGate, openShop, POOLERS, type Shop } from './shop.ts'

const ROUNDS = 25
let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe.each(POOLERS)('callers in one process, with pooler %s', (pooler) => {
  test('200 callers with one key: one effect, one value', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let runs = 0
    const results = await Promise.all(
      Array.from({ length: 200 }, () =>
        once.transaction(call, async (tx) => {
          runs += 1
          const { rows } = await tx.query('INSERT INTO effects (note) VALUES ($1) RETURNING id', [call.key])
          return { id: rows[0]!.id }
        }),
      ),
    )
    expect(results.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
    expect(results.filter(({ outcome }) => outcome === 'replayed')).toHaveLength(199)
    expect(new Set(results.map((result) => JSON.stringify('value' in result && result.value))).size).toBe(1)
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(runs).toBe(1)
  })

  test('a pool of one connection is enough for 200 callers with keys of their own', async () => {
    const once = shop.open({ store: { pooler }, poolOptions: { max: 1 } })
    const note = makeCall().key
    const results = await Promise.all(
      Array.from({ length: 200 }, () => once.transaction(makeCall(), (tx) => leaveEffect(tx, note))),
    )
    for (const { outcome } of results) expect(outcome).toBe('executed')
    expect(await shop.countEffects(note)).toBe(200)
  })

  test('another input while the first one runs is key_reused, and not kept waiting', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const gate = makeGate()
    const first = once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await gate.pass()
    })
    await gate.reached
    const other = await once.transaction({ ...call, input: 'other' }, (tx) => leaveEffect(tx, call.key))
    expect(other).toEqual({ outcome: 'key_reused' })
    gate.open()
    expect((await first).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })
})

describe.each(POOLERS)('two processes, with pooler %s', (pooler) => {
  test('both have run the function, one takes effect, both give its value', async () => {
    const doors = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    for (let round = 0; round < ROUNDS; round++) {
      const call = makeCall()
      const meet = makeBarrier(2)
      const results = await Promise.all(
        doors.map((once, door) =>
          once.transaction(call, async (tx) => {
            await leaveEffect(tx, call.key)
            // Neither knows of the other until both are done: the worst case.
            await meet()
            return { door }
          }),
        ),
      )
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(['executed', 'replayed'])
      const values = results.map((result) => 'value' in result && result.value)
      expect(values[0]).toEqual(values[1])
      expect(await shop.countEffects(call.key)).toBe(1)
    }
  })

  test.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'in a race at %s: one effect, and the same value or an honest in_progress',
    async (isolation) => {
      const doors = Array.from({ length: 4 }, () => shop.open({ store: { pooler }, poolOptions: { max: 3 } }))
      for (let round = 0; round < ROUNDS; round++) {
        const call = makeCall()
        const results = await Promise.all(
          doors.map((once, door) =>
            once.transaction({ ...call, isolation }, async (tx) => {
              await leaveEffect(tx, call.key)
              return { door }
            }),
          ),
        )
        const executed = results.filter(({ outcome }) => outcome === 'executed')
        expect(executed).toHaveLength(1)
        for (const result of results) {
          if (result.outcome === 'in_progress') expect(result.retryAfterMs).toBeGreaterThan(0)
          else expect({ ...result, outcome: 'executed' }).toEqual(executed[0])
        }
        expect(await shop.countEffects(call.key)).toBe(1)
      }
    },
  )

  test('one key with two inputs in a race: one of them takes effect, the other is key_reused', async () => {
    const doors = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    for (let round = 0; round < ROUNDS; round++) {
      const call = makeCall()
      const meet = makeBarrier(2)
      const results = await Promise.all(
        doors.map((once, door) =>
          once.transaction({ ...call, input: { door } }, async (tx) => {
            await leaveEffect(tx, call.key)
            await meet()
          }),
        ),
      )
      expect(results.map(({ outcome }) => outcome).sort()).toEqual(['executed', 'key_reused'])
      expect(await shop.countEffects(call.key)).toBe(1)
    }
  })
})

describe.each(POOLERS)('exclusive, with pooler %s', (pooler) => {
  test('a duplicate elsewhere is told in_progress before it runs anything', async () => {
    const [one, two] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = { ...makeCall(), exclusive: true }
    const gate = makeGate()
    const first = one.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await gate.pass()
      return 'first'
    })
    await gate.reached
    let runs = 0
    const second = await two.transaction(call, async () => ++runs)
    expect(second).toEqual({ outcome: 'in_progress', retryAfterMs: expect.any(Number) })
    expect('retryAfterMs' in second && second.retryAfterMs).toBeGreaterThan(0)
    // Others with keys of their own are not in its way.
    expect((await two.transaction({ ...makeCall(), exclusive: true }, async () => 1)).outcome).toBe(
      'executed',
    )
    gate.open()
    expect(await first).toEqual({ outcome: 'executed', value: 'first' })
    expect(await two.transaction(call, async () => ++runs)).toEqual({ outcome: 'replayed', value: 'first' })
    expect(runs).toBe(0)
  })

  test('in a race the function runs once', async () => {
    const doors = Array.from({ length: 4 }, () => shop.open({ store: { pooler }, poolOptions: { max: 3 } }))
    for (let round = 0; round < ROUNDS; round++) {
      const call = { ...makeCall(), exclusive: true }
      let runs = 0
      await Promise.all(
        doors.map((once) =>
          once.transaction(call, async (tx) => {
            runs += 1
            await leaveEffect(tx, call.key)
          }),
        ),
      )
      expect(runs).toBe(1)
      expect(await shop.countEffects(call.key)).toBe(1)
    }
  })
})
