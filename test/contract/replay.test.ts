import { beforeAll, describe, expect, test } from 'vitest'
import { leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const VALUES: readonly (readonly [name: string, value: unknown, stored: unknown])[] = [
  ['an object', { id: 'tr_1', amount: 5 }, { id: 'tr_1', amount: 5 }],
  ['undefined', undefined, undefined],
  ['null', null, null],
  ['the empty string', '', ''],
  ['false', false, false],
  ['zero', 0, 0],
  ['an empty object', {}, {}],
  ['an empty array', [], []],
  ['an array', [1, 'two', [3], { four: 4 }, null], [1, 'two', [3], { four: 4 }, null]],
  ['unicode', 'Zürich 東京 👩‍👩‍👧 \u2028 e\u0301', 'Zürich 東京 👩‍👩‍👧 \u2028 e\u0301'],
  ['control characters', 'a\u0000b\u0001\n"\\', 'a\u0000b\u0001\n"\\'],
  ['half of a surrogate pair', 'x\ud800y', 'x\ud800y'],
  ['extreme numbers', [2 ** 53 - 1, 1e308, 5e-324, -1.5], [2 ** 53 - 1, 1e308, 5e-324, -1.5]],
  ['a date', { at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
  ['a member that is undefined', { a: 1, b: undefined }, { a: 1 }],
  ['an object that says how it is stored', { toJSON: () => ({ id: 1 }) }, { id: 1 }],
  ['order of members', { z: 1, a: 2 }, { z: 1, a: 2 }],
]

describe.each(POOLERS)('with pooler %s', (pooler) => {
  test.each(VALUES)('%s is the same value on the first run and on the replay', async (_, value, stored) => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const first = await once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      return value
    })
    expect(first).toStrictEqual({ outcome: 'executed', value: stored })
    const second = await once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      return 'another value'
    })
    expect(second).toStrictEqual({ outcome: 'replayed', value: stored })
    expect(JSON.stringify(second)).toBe(JSON.stringify({ ...first, outcome: 'replayed' }))
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('work that never touches the database is protected as well', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    let runs = 0
    const work = async () => ++runs
    expect(await once.transaction(call, work)).toEqual({ outcome: 'executed', value: 1 })
    expect(await once.transaction(call, work)).toEqual({ outcome: 'replayed', value: 1 })
    expect(runs).toBe(1)
  })

  test('another process replays what this one did', async () => {
    const call = makeCall()
    const work = async () => ({ id: 7 })
    await shop.open({ store: { pooler } }).transaction(call, work)
    expect(await shop.open({ store: { pooler } }).transaction(call, work)).toEqual({
      outcome: 'replayed',
      value: { id: 7 },
    })
  })
})

test('a value is the own copy of each caller', async () => {
  const once = shop.open()
  const call = makeCall()
  const original = { list: [1] }
  const results = await Promise.all(
    Array.from({ length: 3 }, () => once.transaction(call, async () => original)),
  )
  original.list.push(2)
  for (const result of results) {
    if (!('value' in result)) throw new Error(`No value: ${result.outcome}.`)
    expect(result.value).toEqual({ list: [1] })
    result.value.list.push(3)
  }
  expect(await once.transaction(call, async () => original)).toEqual({
    outcome: 'replayed',
    value: { list: [1] },
  })
})

test('a member named __proto__ stays a member', async () => {
  const once = shop.open()
  const call = makeCall()
  const work = async () => JSON.parse('{"__proto__":{"admin":true}}') as { admin?: boolean }
  for (const outcome of ['executed', 'replayed']) {
    const result = await once.transaction(call, work)
    expect(result.outcome).toBe(outcome)
    if (!('value' in result)) throw new Error(`No value: ${result.outcome}.`)
    expect(result.value.admin).toBeUndefined()
    expect(JSON.stringify(result.value)).toBe('{"__proto__":{"admin":true}}')
  }
})

test('a record past its retention still replays until it is removed', async () => {
  const once = shop.open({ retentionMs: 1 })
  const call = makeCall()
  await once.transaction(call, async () => 'first')
  expect(await once.transaction(call, async () => 'second')).toEqual({ outcome: 'replayed', value: 'first' })
})
