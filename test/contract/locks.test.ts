import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { assertFence, locks } from '../../src/locks/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { POOLER } from '../setup/pooler.ts'
import { makeRecorder } from '../setup/recorder.ts'
import {
  beginCaller,
  catchError,
  makeCall,
  openProxy,
  openShop,
  SECRET,
  type Shop,
  waitUntil,
} from './shop.ts'

let shop: Shop
let count = 0

beforeAll(async () => {
  shop = await openShop()
})

const newResource = () => `ledger/${++count}`
const LONG = { account: 'acct_1', ttlMs: 60_000 }

async function rowOf(resource: string) {
  const { rows } = await shop.observer.query(
    `SELECT token::int, holder, held_until <= clock_timestamp() AS over, held_until::text FROM onlyonce.locks WHERE resource = $1`,
    [resource],
  )
  return rows[0]
}

/** Waits until the lock has run out by the database's own clock. */
async function untilOver(resource: string): Promise<void> {
  await waitUntil('it has run out', async () => (await rowOf(resource)).over === true)
}

/** Waits until a time is past by the database's clock, such as that of the first ttl, and as much more. */
async function untilPast(heldUntil: string, moreMs = 0): Promise<void> {
  await waitUntil('that time is past', async () => {
    const { rows } = await shop.observer.query(
      `SELECT $1::timestamptz + $2::int * interval '1 ms' < clock_timestamp() AS past`,
      [heldUntil, moreMs],
    )
    return rows[0].past
  })
}

describe('a lock', () => {
  test('is held by one, and the other is told for how long', async () => {
    const resource = newResource()
    const [one, other] = [locks(shop.open()), locks(shop.open())]
    const lock = await one.acquire(resource, LONG)
    expect(lock).toMatchObject({ token: 1, account: 'acct_1', resource })
    expect(lock.lost.aborted).toBe(false)
    const error = await catchError(other.acquire(resource, LONG))
    expect(error).toMatchObject({ code: 'lock_held', status: 409, retryable: true })
    expect(error.retryAfterMs).toBeGreaterThan(50_000)
    expect(error.retryAfterMs).toBeLessThanOrEqual(60_000)
  })

  test('belongs to its account: the same resource of another is another lock', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    await held.acquire(resource, LONG)
    expect((await held.acquire(resource, { ...LONG, account: 'acct_2' })).token).toBe(1)
  })

  test('has a token that rises for ever: over releases, expiries and restarts', async () => {
    const resource = newResource()
    const first = await locks(shop.open()).acquire(resource, LONG)
    expect(await first.release()).toBe(true)
    const again = shop.open()
    const second = await locks(again).acquire(resource, { ...LONG, ttlMs: 20, autoExtend: false })
    await again.close()
    await untilOver(resource)
    const third = await locks(shop.open()).acquire(resource, LONG)
    expect([first.token, second.token, third.token]).toEqual([1, 2, 3])
  })

  test('is given back by its holder alone', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const former = await held.acquire(resource, { ...LONG, ttlMs: 20, autoExtend: false })
    await untilOver(resource)
    const present = await held.acquire(resource, LONG)
    expect(await former.release()).toBe(false)
    expect(await rowOf(resource)).toMatchObject({ token: 2, over: false })
    expect(await present.release()).toBe(true)
    expect(await present.release()).toBe(false)
    expect(await rowOf(resource)).toMatchObject({ token: 2, holder: null })
  })

  test('is kept alive until it is released, and never longer than it may', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const lock = await held.acquire(resource, { ...LONG, ttlMs: 600, holdMaxMs: 2_400 })
    // Three of them.
    await untilPast((await rowOf(resource)).held_until, 2 * 600)
    expect(lock.lost.aborted).toBe(false)
    expect((await rowOf(resource)).over).toBe(false)
    await waitUntil('its time is over', () => lock.lost.aborted)
    await untilOver(resource)
    expect(lock.lost.reason).toMatchObject({ code: 'fence_stale' })
    expect((await held.acquire(resource, LONG)).token).toBe(2)
  })

  test('can be extended by hand', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const lock = await held.acquire(resource, { ...LONG, ttlMs: 300, autoExtend: false })
    const { held_until: heldUntil } = await rowOf(resource)
    await lock.extend(60_000)
    await untilPast(heldUntil)
    expect(lock.lost.aborted).toBe(false)
    expect(await catchError(held.acquire(resource, LONG))).toMatchObject({ code: 'lock_held' })
    await lock.release()
    expect(await catchError(lock.extend())).toMatchObject({ code: 'fence_stale' })
    expect(lock.lost.aborted).toBe(false)
  })

  test('that another has got meanwhile is told as lost', async () => {
    const resource = newResource()
    const lock = await locks(shop.open()).acquire(resource, { ...LONG, ttlMs: 300 })
    await shop.observer.query(
      `UPDATE onlyonce.locks SET token = token + 1, holder = gen_random_uuid(), held_until = now() + interval '1 hour'
       WHERE resource = $1`,
      [resource],
    )
    await waitUntil('it is told', () => lock.lost.aborted)
    expect(await catchError(lock.extend())).toMatchObject({ code: 'fence_stale' })
    expect(await rowOf(resource)).toMatchObject({ token: 2, over: false })
  })

  test('is presumed lost when the database is away for longer than its ttl', async () => {
    const heard = makeRecorder()
    const { proxy, pool } = await openProxy(shop)
    const lock = await locks(shop.open({ pool, observe: heard })).acquire(newResource(), {
      ...LONG,
      ttlMs: 200,
    })
    proxy.setFault({ kind: 'reset' })
    await waitUntil('it is told', () => lock.lost.aborted)
    expect(heard.of('store_error')[0]).toMatchObject({ step: 'lock', code: 'store_unavailable' })
    proxy.setFault(null)
  })

  test('can be waited for, as long as one says', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const first = await held.acquire(resource, LONG)
    const waiting = held.acquire(resource, { ...LONG, waitMs: 30_000 })
    expect(await catchError(held.acquire(resource, { ...LONG, waitMs: 30 }))).toMatchObject({
      code: 'lock_held',
    })
    await first.release()
    expect((await waiting).token).toBe(2)
  })

  test('is got by one of many that try at once', async () => {
    const resource = newResource()
    const doors = [shop.open(), shop.open(), shop.open()].map(locks)
    const tries = Array.from({ length: 30 }, (_, i) => doors[i % 3]!.acquire(resource, LONG))
    const outcomes = await Promise.allSettled(tries)
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await rowOf(resource)).token).toBe(1)
  })
})

describe('an answer that was lost on its way', () => {
  test('is given again to the same holder, and to nobody else', async () => {
    const id = { account: 'acct_1', resource: newResource() }
    const store = postgres({ pool: shop.database.pool({ max: 2 }), pooler: POOLER }).locks!
    const [one, other] = [randomUUID(), randomUUID()]
    for (const _ of [1, 2]) expect(await store.acquire(id, one, 60_000)).toEqual({ got: 'lock', token: 1 })
    expect(await store.acquire(id, other, 60_000)).toMatchObject({ got: 'nothing' })
  })

  test('is asked for again by itself', async () => {
    const { proxy, pool } = await openProxy(shop)
    const once = shop.open({ pool })
    await once.start()
    // The server has done what it was asked for, and its answer is cut off.
    proxy.setFault({ kind: 'reset', direction: 'to_client', afterBytes: 10, times: 1 })
    expect((await locks(once).acquire(newResource(), LONG)).token).toBe(1)
  })
})

describe('two signs of life that overtake each other', () => {
  test('leave the longer one, for the database and for the holder', async () => {
    const resource = newResource()
    const lock = await locks(shop.open()).acquire(resource, { ...LONG, ttlMs: 600 })
    const { held_until: heldUntil } = await rowOf(resource)
    await lock.extend(60_000)
    await lock.extend(1)
    await untilPast(heldUntil)
    expect(lock.lost.aborted).toBe(false)
    const { rows } = await shop.observer.query(
      `SELECT held_until > now() + interval '30 seconds' AS long FROM onlyonce.locks WHERE resource = $1`,
      [resource],
    )
    expect(rows[0].long).toBe(true)
  })
})

describe('assertFence', () => {
  test('lets nobody else get the lock before the transaction has ended, though its ttl is over', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const lock = await held.acquire(resource, { ...LONG, ttlMs: 50, autoExtend: false })
    const client = await beginCaller(shop)
    await assertFence(client, lock)
    await untilOver(resource)
    expect(await catchError(held.acquire(resource, LONG))).toMatchObject({ code: 'lock_held' })
    const waiting = held.acquire(resource, { ...LONG, waitMs: 30_000 })
    expect((await rowOf(resource)).token).toBe(1)
    await client.query('COMMIT')
    expect((await waiting).token).toBe(2)
  })

  test('does not keep the lock from being extended, however long the transaction takes', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const lock = await held.acquire(resource, { ...LONG, ttlMs: 600 })
    const client = await beginCaller(shop)
    await assertFence(client, lock)
    await untilPast((await rowOf(resource)).held_until, 2 * 600)
    expect(await rowOf(resource)).toMatchObject({ token: 1, over: false })
    expect(lock.lost.aborted).toBe(false)
    await lock.extend()
    await assertFence(client, lock)
    await client.query('COMMIT')
    expect(await lock.release()).toBe(true)
  })

  test.each(['repeatable read', 'serializable'])('works beside signs of life at %s', async (isolation) => {
    const held = locks(shop.open())
    const lock = await held.acquire(newResource(), LONG)
    const client = await beginCaller(shop, `BEGIN ISOLATION LEVEL ${isolation}`)
    await client.query('SELECT 1 FROM effects')
    await lock.extend()
    await assertFence(client, lock)
    await lock.extend()
    await assertFence(client, lock)
    await client.query('COMMIT')
  })

  test('rejects a late writer, and its transaction cannot commit whatever it does', async () => {
    const resource = newResource()
    const held = locks(shop.open())
    const late = await held.acquire(resource, { ...LONG, ttlMs: 20, autoExtend: false })
    await untilOver(resource)
    const present = await held.acquire(resource, LONG)
    const client = await beginCaller(shop)
    await client.query(`INSERT INTO effects (note) VALUES ('late')`)
    expect(await catchError(assertFence(client, late))).toMatchObject({ code: 'fence_stale' })
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
    expect(await shop.countEffects('late')).toBe(0)
    await client.query('BEGIN')
    await assertFence(client, present)
    await client.query('COMMIT')
  })

  test('rejects a holder that has given the lock back', async () => {
    const lock = await locks(shop.open()).acquire(newResource(), LONG)
    await lock.release()
    const client = await beginCaller(shop)
    expect(await catchError(assertFence(client, lock))).toMatchObject({ code: 'fence_stale' })
  })

  test('works inside a protected transaction, which a late writer leaves without effect', async () => {
    const resource = newResource()
    const once = shop.open()
    const lock = await locks(once).acquire(resource, { ...LONG, ttlMs: 20, autoExtend: false })
    const call = makeCall()
    const work = async (tx: Parameters<typeof assertFence>[0]) => {
      await tx.query(`INSERT INTO effects (note) VALUES ('guarded')`)
      await assertFence(tx, lock)
      return 'done'
    }
    expect(await once.transaction(call, work)).toEqual({ outcome: 'executed', value: 'done' })
    await untilOver(resource)
    await locks(once).acquire(resource, LONG)
    expect(await catchError(once.transaction(makeCall(), work))).toMatchObject({ code: 'fence_stale' })
    expect(await shop.countEffects('guarded')).toBe(1)
  })

  test('refuses a pool, where it would protect nothing, and what is no lock', async () => {
    const lock = await locks(shop.open()).acquire(newResource(), LONG)
    expect(await catchError(assertFence(shop.observer, lock))).toMatchObject({ code: 'transaction_required' })
    expect(await catchError(assertFence(shop.observer, { ...lock } as never))).toMatchObject({
      code: 'option_invalid',
    })
  })
})

describe('what is refused', () => {
  test.each([
    [{ account: 'acct_1' }, 'ttlMs'],
    [{ account: 'acct_1', ttlMs: 0 }, 'ttlMs'],
    [{ account: 'acct_1', ttlMs: Number.POSITIVE_INFINITY }, 'ttlMs'],
    [{ ttlMs: 1 }, 'account'],
    [{ ...LONG, waitMs: -1 }, 'waitMs'],
    [{ ...LONG, holdMaxMs: 0 }, 'holdMaxMs'],
    [{ ...LONG, ttl: 5 }, 'no option ttl'],
  ])('%j', async (options, why) => {
    await expect(locks(shop.open()).acquire('r', options as never)).rejects.toThrow(why)
  })

  test('a resource that is none', async () => {
    const error = await catchError(locks(shop.open()).acquire('', LONG))
    expect(error).toMatchObject({ code: 'resource_invalid' })
  })

  test('a store without locks', () => {
    expect(() => locks(onlyonce({ store: memory(), secret: SECRET }))).toThrow(/has no locks/)
  })

  test('a process that is closing', async () => {
    const once = shop.open()
    await once.close()
    expect(await catchError(locks(once).acquire('r', LONG))).toMatchObject({ code: 'closed' })
  })
})
