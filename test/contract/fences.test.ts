import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import { assertFence, type Lock, locks } from '../../src/locks/index.ts'
import { inbox } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const HELD = { account: 'acct_1', ttlMs: 60_000, autoExtend: false }

/** A lock that another holder has got meanwhile. */
async function staleLock(): Promise<Lock> {
  const resource = `ledger/${randomUUID()}`
  const lock = await locks(once).acquire(resource, HELD)
  await loseLock(lock)
  return lock
}

async function loseLock({ resource }: Lock): Promise<void> {
  await shop.observer.query('UPDATE onlyonce.locks SET held_until = now() WHERE resource = $1', [resource])
  await locks(once).acquire(resource, HELD)
}

type Client = Awaited<ReturnType<typeof beginCaller>>
/** The calls that work behind a savepoint in a transaction of the caller's. */
const calls: [
  string,
  (client: Client, work: (tx: { query: Client['query'] }) => Promise<unknown>) => Promise<unknown>,
][] = [
  [
    'once.within',
    (client, work) => once.within(client, makeCall(), async (tx) => void (await work(tx as Client))),
  ],
  [
    'the inbox',
    (client, work) =>
      inbox(once).once(client, { account: 'acct_1', source: 's', messageId: randomUUID() }, async () =>
        work(client),
      ),
  ],
]

describe.each(calls)('a fence that is asserted inside %s', (_, call) => {
  test('keeps a stale holder from committing what it wrote before the call', async () => {
    const lock = await staleLock()
    const client = await beginCaller(shop)
    await leaveEffect(client, lock.resource)
    const error = await catchError(call(client, (tx) => assertFence(tx, lock)))
    expect(error).toMatchObject({ code: 'fence_stale' })
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
    expect(await shop.countEffects(lock.resource)).toBe(0)
  })

  test('does so where the function goes back to a savepoint of its own, and returns', async () => {
    const lock = await staleLock()
    const client = await beginCaller(shop)
    await leaveEffect(client, lock.resource)
    const error = await catchError(
      call(client, async (tx) => {
        await tx.query('SAVEPOINT own')
        await assertFence(tx, lock).catch(() => {})
        await tx.query('ROLLBACK TO SAVEPOINT own')
      }),
    )
    expect(error).toMatchObject({ code: 'fence_stale' })
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
    expect(await shop.countEffects(lock.resource)).toBe(0)
  })

  test('keeps the next holder out until the transaction ends, also when the function throws', async () => {
    const lock = await locks(once).acquire(`ledger/${randomUUID()}`, HELD)
    const client = await beginCaller(shop)
    const thrown = call(client, async (tx) => {
      await assertFence(tx, lock)
      throw new Error('no')
    })
    expect(await catchError(thrown)).toMatchObject({ message: 'no' })
    await leaveEffect(client, lock.resource)
    await lock.release()
    expect(await catchError(locks(once).acquire(lock.resource, HELD))).toMatchObject({ code: 'lock_held' })
    await client.query('COMMIT')
    expect((await locks(once).acquire(lock.resource, HELD)).token).toBe(2)
    expect(await shop.countEffects(lock.resource)).toBe(1)
  })

  test('is asked of no later transaction of the client', async () => {
    const lock = await locks(once).acquire(`ledger/${randomUUID()}`, HELD)
    const client = await beginCaller(shop)
    await call(client, (tx) => assertFence(tx, lock))
    await client.query('COMMIT')
    await loseLock(lock)
    await client.query('BEGIN')
    await call(client, async () => {})
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
  })
})
