import { beforeEach, describe, expect, test } from 'vitest'
import { beginCaller, catchError, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

const A = 'secret-a-0123456789-0123456789-0123456789'
const B = 'secret-b-0123456789-0123456789-0123456789'
const ONLY_A = { current: 'a', keys: { a: A } }
const B_AFTER_A = { current: 'b', keys: { a: A, b: B } }
const ONLY_B = { current: 'b', keys: { b: B } }

let shop: Shop

// A database for each test: records of one test name secrets that the next one does not have.
beforeEach(async () => {
  shop = await openShop()
})

describe.each(POOLERS)('a key ring, with pooler %s', (pooler) => {
  test('a record made with an older secret replays, and refuses another input', async () => {
    const call = makeCall()
    await shop.open({ store: { pooler }, secret: ONLY_A }).transaction(call, async () => 'by a')
    const rotated = shop.open({ store: { pooler }, secret: B_AFTER_A })
    expect(await rotated.transaction(call, async () => 'by b')).toEqual({
      outcome: 'replayed',
      value: 'by a',
    })
    expect(await rotated.transaction({ ...call, input: 0 }, async () => '')).toEqual({
      outcome: 'key_reused',
    })
  })

  test('a process that is still at the older secret reads what the newer one wrote', async () => {
    const call = makeCall()
    await shop.open({ store: { pooler }, secret: B_AFTER_A }).transaction(call, async () => 'by b')
    const older = shop.open({ store: { pooler }, secret: { current: 'a', keys: { a: A, b: B } } })
    expect(await older.transaction(call, async () => 'by a')).toEqual({ outcome: 'replayed', value: 'by b' })
  })

  test('a retryable record made with an older secret runs, and refuses another input', async () => {
    const call = makeCall()
    const failing = shop.open({ store: { pooler }, secret: ONLY_A }).transaction(call, async () => {
      throw new Error('no')
    })
    await catchError(failing)
    const rotated = shop.open({ store: { pooler }, secret: B_AFTER_A })
    expect(await rotated.transaction({ ...call, input: 0 }, async () => '')).toEqual({
      outcome: 'key_reused',
    })
    expect((await rotated.transaction(call, async () => 1)).outcome).toBe('executed')
  })

  test.each([
    ['the same input', {}],
    ['another input', { input: 'other' }],
  ])('a missing secret is fingerprint_key_unknown, never key_reused: %s', async (_, changes) => {
    const call = makeCall()
    const once = shop.open({ store: { pooler }, secret: ONLY_B })
    // Before there is a record that would keep it from starting.
    await once.start()
    await shop.open({ store: { pooler }, secret: ONLY_A }).transaction(call, async () => 'by a')
    let runs = 0
    const error = await catchError(once.transaction({ ...call, ...changes }, async () => ++runs))
    expect(error).toMatchObject({ code: 'fingerprint_key_unknown', status: 503, retryable: true })
    const client = await beginCaller(shop)
    const inside = await catchError(once.within(client, { ...call, ...changes }, async () => ++runs))
    expect(inside.code).toBe('fingerprint_key_unknown')
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(runs).toBe(0)
    expect((await once.explain(call)).state).toBe('completed')
    const rotated = shop.open({ store: { pooler }, secret: B_AFTER_A })
    expect(await rotated.transaction(call, async () => '')).toEqual({ outcome: 'replayed', value: 'by a' })
  })

  test('another secret under the same name never replays', async () => {
    const call = makeCall()
    await shop.open({ store: { pooler }, secret: ONLY_A }).transaction(call, async () => 'by a')
    const mistaken = shop.open({ store: { pooler }, secret: { current: 'a', keys: { a: B } } })
    let runs = 0
    await mistaken.transaction(call, async () => ++runs).catch(() => {})
    expect(runs).toBe(0)
  })

  test('bytes and their text are the same secret', async () => {
    const call = makeCall()
    await shop.open({ store: { pooler }, secret: A }).transaction(call, async () => 1)
    const once = shop.open({ store: { pooler }, secret: Buffer.from(A) })
    expect((await once.transaction(call, async () => 2)).outcome).toBe('replayed')
  })
})
