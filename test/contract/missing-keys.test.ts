import { beforeEach, describe, expect, test } from 'vitest'
import { beginOutside, catchError, makeCall, openShop, POOLERS, type Shop, settleWithin } from './shop.ts'

const bytes = (name: string) => `${name}-0123456789-0123456789-0123456789`
const ring = (...ids: string[]) => ({
  current: ids[0]!,
  keys: Object.fromEntries(ids.map((id) => [id, bytes(id)])),
})

let shop: Shop

beforeEach(async () => {
  shop = await openShop()
})

async function readList(): Promise<string[]> {
  const { rows } = await shop.observer.query(
    `SELECT purpose || ' ' || key_id AS key FROM onlyonce.key_ids ORDER BY key`,
  )
  return rows.map(({ key }) => key)
}

describe.each(POOLERS)('a start without a key that records name, with pooler %s', (pooler) => {
  const store = { pooler }

  test.each([
    ['a completed record', async () => 1],
    ['a retryable record', () => Promise.reject(new Error('no'))],
  ])('is refused for the fingerprint of %s, and starts once that is gone', async (_, work) => {
    const call = makeCall()
    await shop
      .open({ store, secret: ring('a') })
      .transaction(call, work)
      .catch(() => {})
    const once = shop.open({ store, secret: ring('b') })
    const refusal = { code: 'key_ring_incomplete', status: 500, retryable: true }
    expect(await catchError(once.start())).toMatchObject({
      ...refusal,
      message: expect.stringMatching(/"a"/),
    })
    let runs = 0
    expect(await catchError(once.transaction(makeCall(), async () => ++runs))).toMatchObject(refusal)
    expect(runs).toBe(0)
    await shop.observer.query(`UPDATE onlyonce.records
      SET state = 'expired', reply_status = NULL, error_code = NULL, expires_at = now()`)
    await once.start()
    expect(await readList()).toEqual(['fingerprint b'])
  })

  test('is refused for a sealed reply, with another key and with none', async () => {
    const call = makeCall()
    await shop.open({ store, encryption: ring('a') }).transaction(call, async () => 1)
    for (const options of [{ encryption: ring('b') }, {}]) {
      const once = shop.open({ store, ...options })
      expect(await catchError(once.start())).toMatchObject({
        code: 'key_ring_incomplete',
        message: expect.stringMatching(/encryption.*"a"/),
      })
      // What an operator asks first is told without the key.
      expect((await once.explain(call)).state).toBe('completed')
    }
    const both = shop.open({ store, encryption: ring('b', 'a') })
    expect(await both.transaction(call, async () => 2)).toEqual({ outcome: 'replayed', value: 1 })
    expect(await readList()).toEqual(['fingerprint default', 'reply a', 'reply b'])
    await shop.observer.query('DELETE FROM onlyonce.records')
    await shop.open({ store, encryption: ring('b') }).start()
    expect(await readList()).toEqual(['fingerprint default', 'reply b'])
  })

  const otherBytes = (id: string) => ({ current: id, keys: { [id]: bytes('other') } })

  test.each([
    ['secret', 'fingerprint a'],
    ['encryption', 'reply a'],
  ])(
    'is refused where %s has other bytes under the id, as long as a record needs the earlier ones',
    async (option, listed) => {
      const call = makeCall()
      await shop.open({ store, [option]: ring('a') }).transaction(call, async () => 1)
      const changed = shop.open({ store, [option]: otherBytes('a') })
      let runs = 0
      expect(await catchError(changed.transaction(call, async () => ++runs))).toMatchObject({
        code: 'key_ring_incomplete',
        message: expect.stringMatching(/"a" \(the key with this id has other bytes here\)/),
      })
      expect(runs).toBe(0)
      const back = await shop.open({ store, [option]: ring('a') }).transaction(call, async () => 2)
      expect(back).toEqual({ outcome: 'replayed', value: 1 })
      await shop.observer.query('DELETE FROM onlyonce.records')
      await changed.start()
      expect(await readList()).toContain(listed)
      await changed.transaction(call, async () => 1)
      expect(await catchError(shop.open({ store, [option]: ring('a') }).start())).toMatchObject({
        code: 'key_ring_incomplete',
      })
    },
  )

  test('learns the bytes of a key that an earlier version has listed without them', async () => {
    await shop.open({ store, secret: ring('a') }).transaction(makeCall(), async () => 1)
    await shop.observer.query('UPDATE onlyonce.key_ids SET digest = NULL')
    await shop.open({ store, secret: ring('a') }).start()
    expect(await catchError(shop.open({ store, secret: otherBytes('a') }).start())).toMatchObject({
      code: 'key_ring_incomplete',
    })
  })

  test('names all that is missing, and what for', async () => {
    const old = shop.open({ store, secret: ring('f1'), encryption: ring('r1') })
    await old.transaction(makeCall(), async () => 1)
    const older = shop.open({ store, secret: ring('f2', 'f1'), encryption: ring('r2', 'r1') })
    await older.transaction(makeCall(), async () => 1)
    const error = await catchError(shop.open({ store, secret: ring('f3'), encryption: ring('r3') }).start())
    expect(error.message).toMatch(/secret .*"f1".*secret .*"f2".*encryption .*"r1".*encryption .*"r2"/)
    // Refused, it will write nothing, and so is not on the list.
    expect(await readList()).toEqual(['fingerprint f1', 'fingerprint f2', 'reply r1', 'reply r2'])
  })

  test('takes a key off the list that a running process uses later: its records are 503, not run', async () => {
    const old = shop.open({ store, encryption: ring('a') })
    await old.start()
    const once = shop.open({ store, encryption: ring('b') })
    await once.start()
    expect(await readList()).toEqual(['fingerprint default', 'reply b'])
    const call = makeCall()
    await old.transaction(call, async () => 1)
    let runs = 0
    expect(await catchError(once.transaction(call, async () => ++runs))).toMatchObject({
      code: 'seal_key_unknown',
    })
    expect(runs).toBe(0)
    await shop.open({ store, encryption: ring('a', 'b') }).start()
    expect(await readList()).toContain('reply a')
  })

  test('ends in bounded time when there is too much to read, and takes nothing for granted', async () => {
    await shop.open({ store, secret: ring('a') }).start()
    await shop.observer.query(`
      INSERT INTO onlyonce.records
        (account, operation, key, state, fence, attempt_id, owner, attempted_at, fingerprint,
         fingerprint_key_id, created_at, changed_at, lease_until)
      SELECT 'a', 'o', n, 'in_progress', 1, gen_random_uuid(), 'owner', now(), '', 'b', now(), now(), now()
      FROM generate_series(1, 50000) AS n`)
    const hasty = shop.open({ store: { ...store, keyCheckMaxMs: 1 }, secret: ring('b') })
    expect(await catchError(hasty.start())).toMatchObject({
      code: 'key_ring_incomplete',
      message: expect.stringMatching(/"a".*in 1 ms/),
    })
    expect(await readList()).toContain('fingerprint a')
    await shop.open({ store, secret: ring('b') }).start()
    expect(await readList()).toEqual(['fingerprint b'])
  })
})

describe('a usual start', () => {
  const options = { secret: ring('b', 'a'), encryption: ring('s', 'r') }

  test('reads no record and writes nothing', async () => {
    await shop.open(options).transaction(makeCall(), async () => 1)
    const read = async () => (await shop.observer.query('SELECT xmin, ctid, * FROM onlyonce.key_ids')).rows
    const before = await read()
    const client = await beginOutside(shop)
    // Whoever so much as looked at a record would wait for this.
    await client.query('LOCK TABLE onlyonce.records IN ACCESS EXCLUSIVE MODE')
    await settleWithin(20_000, shop.open(options).start())
    expect(await read()).toEqual(before)
    expect(before).toHaveLength(2)
    const lacking = shop.open({ ...options, secret: ring('c'), store: { lockWaitMaxMs: 50 } })
    expect(await catchError(lacking.start())).toMatchObject({ code: 'store_unavailable' })
  })

  test.each([
    ['with the same keys', [options]],
    ['with keys in another order', [options, { secret: ring('a', 'b'), encryption: ring('r', 's') }]],
    ['without keys that nobody uses', [options, { secret: ring('c') }, { encryption: ring('t') }]],
  ])('may be made by twenty at once, %s', async (_, kinds) => {
    await shop.open({ secret: ring('old1'), encryption: ring('old2') }).start()
    const doors = Array.from({ length: 20 }, (_, i) =>
      shop.open({ ...kinds[i % kinds.length]!, poolOptions: { max: 2 } }),
    )
    await Promise.all(doors.map((once) => once.start()))
    expect((await readList()).filter((key) => key.includes('old'))).toEqual([])
  })
})
