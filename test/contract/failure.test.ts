import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import { catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

describe.each(POOLERS)('a function that throws, with pooler %s', (pooler) => {
  test.each([
    ['an error', new Error('declined')],
    ['a string', 'declined'],
    ['undefined', undefined],
    ['null', null],
    ['a frozen object', Object.freeze({ code: 'declined' })],
    [
      'an error with a code of PostgreSQL',
      Object.assign(new Error('not from the database'), { code: '23505' }),
    ],
  ])('%s rolls back, is thrown on as it is, and the retry runs', async (_, thrown) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const work = async (fails: boolean) =>
      await once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        if (fails) throw thrown
        return 'done'
      })
    expect(await catchError(work(true))).toBe(thrown)
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
    expect(await work(false)).toEqual({ outcome: 'executed', value: 'done' })
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(await work(true)).toEqual({ outcome: 'replayed', value: 'done' })
  })

  test('an error of the database is thrown on as the driver made it', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let seen: unknown
    const error = await catchError(
      once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        try {
          await tx.query('SELECT 1 / 0')
        } catch (error) {
          seen = error
          throw error
        }
      }),
    )
    expect(error.code).toBe('22012')
    expect(error).toBe(seen)
    expect(await shop.countEffects(call.key)).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
  })

  test('it may fail many times and still takes effect once', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    for (let turn = 1; turn <= 5; turn++) {
      const thrown = new Error(`turn ${turn}`)
      const failing = once.transaction(call, async (tx) => {
        await leaveEffect(tx, call.key)
        throw thrown
      })
      expect(await catchError(failing)).toBe(thrown)
    }
    expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('it throws before its promise exists', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const thrown = new Error('at once')
    const failing = once.transaction(call, () => {
      throw thrown
    })
    expect(await catchError(failing)).toBe(thrown)
    expect((await once.explain(call)).state).toBe('retryable')
  })

  test('what is kept of an error is bounded and can be stored', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const thrown = new Error(`\u0000\ud800${'x'.repeat(100_000)}`)
    const failing = once.transaction(call, async () => {
      throw thrown
    })
    expect(await catchError(failing)).toBe(thrown)
    const { state, attempts } = await once.explain(call)
    expect(state).toBe('retryable')
    expect(attempts.at(-1)?.failure?.message.length).toBeLessThanOrEqual(LIMITS.errorMessageLengthMax)
  })
})

test('all who share one flight are told of its failure, and nothing has happened', async () => {
  const once = shop.open()
  const call = makeCall()
  const failures = await Promise.all(
    Array.from({ length: 20 }, () =>
      catchError(
        once.transaction(call, async (tx) => {
          await leaveEffect(tx, call.key)
          throw new Error('declined')
        }),
      ),
    ),
  )
  for (const failure of failures) expect(failure.message).toBe('declined')
  expect(await shop.countEffects(call.key)).toBe(0)
  expect((await once.transaction(call, (tx) => leaveEffect(tx, call.key))).outcome).toBe('executed')
})
