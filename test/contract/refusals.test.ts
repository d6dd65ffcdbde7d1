import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { ERRORS } from '../../src/entries/errors.ts'
import { type ErrorCode, OnlyonceError, onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { type Call, catchError, makeCall, openShop, SECRET, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

function nest(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = [value]
  return value
}

function makeCycle(): unknown {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  return cycle
}

const REFUSED: readonly (readonly [name: string, changes: object, code: ErrorCode])[] = [
  ['no key', { key: undefined }, 'key_not_a_string'],
  ['a number as key', { key: 12345678 }, 'key_not_a_string'],
  ['an empty key', { key: '' }, 'key_empty'],
  ['a blank key', { key: '          ' }, 'key_blank'],
  ['a short key', { key: 'abc' }, 'key_too_short'],
  ['a long key', { key: 'k'.repeat(256) }, 'key_too_long'],
  ['a control character in the key', { key: 'abcdefgh\u0000' }, 'key_control_character'],
  ['a line break in the key', { key: 'abcdefgh\n' }, 'key_control_character'],
  ['a key outside ASCII', { key: 'schlüssel-1' }, 'key_not_ascii'],
  ['a card number as key', { key: '4242424242424242' }, 'key_card_number'],
  ['an e-mail address as key', { key: 'somebody@example.com' }, 'key_email'],
  ['an empty account', { account: '' }, 'account_invalid'],
  ['no account', { account: undefined }, 'account_invalid'],
  ['null as account', { account: null }, 'account_invalid'],
  ['a number as account', { account: 7 }, 'account_invalid'],
  ['a long account', { account: 'a'.repeat(256) }, 'account_invalid'],
  ['an account that PostgreSQL cannot hold', { account: 'a\u0000b' }, 'account_invalid'],
  ['an account that is not text', { account: 'a\ud800' }, 'account_invalid'],
  ['an empty operation', { operation: '' }, 'operation_invalid'],
  ['no operation', { operation: undefined }, 'operation_invalid'],
  ['an operation with nothing but a version', { operation: '@2' }, 'operation_invalid'],
  ['a long operation', { operation: 'o'.repeat(256) }, 'operation_invalid'],
  ['a bigint in the input', { input: { amount: 5n } }, 'input_not_serializable'],
  ['NaN in the input', { input: { amount: Number.NaN } }, 'input_not_serializable'],
  ['a function in the input', { input: { amount: () => 5 } }, 'input_not_serializable'],
  ['a symbol in the input', { input: { amount: Symbol('5') } }, 'input_not_serializable'],
  ['a cycle in the input', { input: makeCycle() }, 'input_not_serializable'],
  ['retentionMs of 0', { retentionMs: 0 }, 'option_invalid'],
  ['deadlineMs that is no number', { deadlineMs: Number.NaN }, 'option_invalid'],
]

describe('refused before anything runs', () => {
  test.each(REFUSED)('%s', async (_, changes, code) => {
    const once = shop.open()
    const call = { ...makeCall(), ...changes } as Call
    let runs = 0
    const error = await catchError(once.transaction(call, async () => ++runs))
    expect(error).toBeInstanceOf(OnlyonceError)
    expect({ code: error.code, status: error.status, retryable: error.retryable }).toEqual({
      code,
      status: ERRORS[code].status,
      retryable: ERRORS[code].retryable,
    })
    expect((await catchError(once.within(shop.observer, call, async () => ++runs))).code).toBe(code)
    expect(runs).toBe(0)
  })

  test('an input that is nested too deeply', async () => {
    const once = shop.open()
    let runs = 0
    const error = await catchError(
      once.transaction(makeCall({ input: nest(100_000) }), async () => {
        runs += 1
      }),
    )
    expect(error).toBeInstanceOf(OnlyonceError)
    expect(runs).toBe(0)
  })

  test('they leave no trace', async () => {
    const { rows } = await shop.observer.query('SELECT count(*)::int AS count FROM effects')
    expect(rows[0].count).toBe(0)
  })
})

test.each([
  ['the longest key', { key: 'k'.repeat(255) }],
  ['the shortest key', { key: 'k1-k2-k3' }],
  ['the longest account', { account: '東'.repeat(255) }],
  ['the longest operation', { operation: 'o'.repeat(255) }],
  ['a key full of SQL', { key: `'; DROP TABLE effects; --"\\` }],
])('%s is accepted and replays', async (_, changes) => {
  const once = shop.open()
  const call = makeCall(changes)
  expect((await once.transaction(call, async () => 1)).outcome).toBe('executed')
  expect(await once.transaction(call, async () => 2)).toEqual({ outcome: 'replayed', value: 1 })
})

describe('options are checked at the door', () => {
  // Connects to nothing until it is asked to.
  const pool = new pg.Pool()
  test.each([
    ['a short secret', () => onlyonce({ store: postgres({ pool }), secret: 'short' }), 'secret_invalid'],
    [
      'a ring without its current key',
      () => onlyonce({ store: postgres({ pool }), secret: { current: 'b', keys: { a: SECRET } } }),
      'secret_invalid',
    ],
    ['no store', () => onlyonce({ secret: SECRET } as never), 'option_invalid'],
    ['no pool', () => postgres({}), 'option_invalid'],
    ['two ways to connect', () => postgres({ pool, connectionString: 'x' }), 'option_invalid'],
    ['an option that does not exist', () => postgres({ pool, lockWait: 1 } as never), 'option_invalid'],
    ['a pooler that does not exist', () => postgres({ pool, pooler: 'session' as never }), 'option_invalid'],
    ['a negative bound', () => postgres({ pool, lockWaitMaxMs: -1 }), 'option_invalid'],
    ['a schema that is not a name', () => postgres({ pool, schema: 'a"; DROP' }), 'option_invalid'],
  ])('%s', (_, make, code) => {
    expect(make).toThrow(expect.objectContaining({ code }))
  })
})
