/** Processes of version 0.1.0 beside those of this one, on this one's schema: what the earlier version sends is played. */
import { readdir, readFile } from 'node:fs/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted } from '../../src/index.ts'
import { engineOf } from '../../src/onlyonce/onlyonce.ts'
import { operator } from '../../src/operator/index.ts'
import { completer, reconciler, recoverer } from '../../src/workers/index.ts'
import { catchError, makeCall, openShop, type Shop } from '../contract/shop.ts'
import { LOOKS, makeMemory, parkedPayment, rowOf, VOID } from './remembered.ts'
import * as earlier from './version-0-1-0.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

/** Lock not available: the earlier version takes the record for one that another holds, and leaves it alone. */
const REFUSED = { code: '55P03', message: expect.stringContaining('void calls') }

/** Everything about a record that a take-over could change. */
async function allOf(key: string) {
  const { rows } = await shop.observer.query(
    'SELECT * FROM onlyonce.attempts WHERE key = $1 ORDER BY fence',
    [key],
  )
  return { record: await rowOf(shop, key), attempts: rows }
}

/** The owner that has it is gone. */
const lapse = (key: string) =>
  shop.observer.query(
    `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 hour',
       attempted_at = clock_timestamp() - interval '2 hours' WHERE key = $1`,
    [key],
  )

test('every migration lets it in', async () => {
  const folder = new URL('../../migrations/', import.meta.url)
  const files = (await readdir(folder)).filter((name) => name.endsWith('.sql'))
  expect(files.length).toBeGreaterThan(earlier.KNOWN_MIGRATION)
  for (const name of files) {
    const text = await readFile(new URL(name, folder), 'utf8')
    const requires = Number(/^-- requires: (\d+)\n/.exec(text)?.[1])
    expect([name, requires <= earlier.KNOWN_MIGRATION]).toEqual([name, true])
  }
})

describe('a record with a void call', () => {
  test('is not taken by it when it is retryable, and this version makes the one call', async () => {
    const till = makeMemory()
    const { once, pay, call, id, keyOf } = await parkedPayment(shop, 'payments.mixed_retry', till)
    await operator(once).resolve(id, VOID)
    const before = await allOf(call.key)
    expect(await catchError(earlier.takeOver(shop.observer, id))).toMatchObject(REFUSED)
    expect(await catchError(earlier.claim(shop.observer, id))).toMatchObject(REFUSED)
    expect(await allOf(call.key)).toEqual(before)
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
  })

  test('is not taken by it when an owner of this version has vanished', async () => {
    const till = makeMemory()
    let vanish = (): void => {}
    const vanished = new Promise<void>((resolve) => {
      vanish = resolve
    })
    const { once, pay, call, id, keyOf } = await parkedPayment(shop, 'payments.mixed_vanished', till)
    await operator(once).resolve(id, VOID)
    till.during = () => {
      vanish()
      return new Promise(() => {})
    }
    once.run(pay, call).catch(() => {})
    await vanished
    till.during = async () => {}
    await lapse(call.key)
    const before = await allOf(call.key)
    expect(before.record).toMatchObject({ state: 'in_progress', taken_by: before.record.attempt_id })
    expect(await catchError(earlier.takeOver(shop.observer, id))).toMatchObject(REFUSED)
    expect((await allOf(call.key)).record).toMatchObject({
      fence: before.record.fence,
      void_calls: [keyOf(0)],
    })
    const next = shop.open({ ...LOOKS, operations: [pay] })
    await lapse(call.key)
    expect(await completer(next, { graceMs: 1 }).runOnce()).toMatchObject({ done: 1 })
    expect(await next.run(pay, call)).toMatchObject({ outcome: 'replayed' })
    expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
  })

  test('is found by its reconciler, and left for that of this version', async () => {
    const till = makeMemory()
    const { once, pay, call, id, keyOf } = await parkedPayment(shop, 'payments.mixed_doubt', till)
    await operator(once).resolve(id, VOID)
    till.during = async () => {
      till.lookup = 'away'
      throw new Error('socket hang up')
    }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    till.during = async () => {}
    till.lookup = 'truth'
    await shop.observer.query('UPDATE onlyonce.records SET look_at = now() WHERE key = $1', [call.key])
    const before = await allOf(call.key)
    expect(await earlier.findDue(shop.observer, id.operation, before.record.version)).toEqual([call.key])
    expect(await catchError(earlier.takeOver(shop.observer, id))).toMatchObject(REFUSED)
    expect(await allOf(call.key)).toEqual(before)
    expect(await reconciler(once).runOnce()).toMatchObject({ done: 1 })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed' })
    expect(till.charges).toEqual([{ key: keyOf(1), id: 'ch_1' }])
  })

  test('begins a later life under this version, as a handler too', async () => {
    const till = makeMemory()
    const { once, call, id } = await parkedPayment(shop, 'payments.mixed_later', till)
    await operator(once).resolve(id, VOID)
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'expired', error_code = NULL WHERE key = $1`,
      [call.key],
    )
    expect(await catchError(earlier.claim(shop.observer, id))).toMatchObject(REFUSED)
    const run = once.execute({ ...call, operation: id.operation }, async () => 'done')
    expect(await run).toMatchObject({ outcome: 'executed' })
    expect(await rowOf(shop, call.key)).toMatchObject({ state: 'completed', void_calls: null })
  })
})

describe('any other record', () => {
  test('is taken by it, and by this version behind it', async () => {
    const till = makeMemory()
    const { once, pay, call, id, keyOf } = await parkedPayment(shop, 'payments.mixed_plain', till)
    await operator(once).resolve(id, { by: 'ann', why: 'it may run', allowRetry: true })
    expect(await earlier.takeOver(shop.observer, id)).toBe(1)
    expect(await rowOf(shop, call.key)).toMatchObject({ state: 'in_progress', owner: 'version 0.1.0' })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'in_progress' })
    await lapse(call.key)
    expect(await engineOf(once).store.look(id)).toMatchObject({ record: { kind: 'operation' } })
    const { fence } = await rowOf(shop, call.key)
    await completer(once, { graceMs: 1 }).runOnce()
    expect(Number((await rowOf(shop, call.key)).fence)).toBe(Number(fence) + 1)
    expect(till.asked.every((key) => key === keyOf(0))).toBe(true)
  })

  test('that it took is not what the attempt before it may have been', async () => {
    const once = shop.open()
    const call = makeCall()
    const id = { account: call.account, operation: call.operation, key: call.key }
    const kindNow = async () => (await engineOf(once).store.look(id))?.record.kind
    const fail = async () => {
      throw notExecuted(new Error('not now'))
    }
    await catchError(once.execute({ ...call, rerunnable: true }, fail))
    expect(await kindNow()).toBe('handler_rerunnable')
    await catchError(once.execute({ ...call, rerunnable: true }, fail))
    expect(await kindNow()).toBe('handler_rerunnable')
    expect(await earlier.claim(shop.observer, id)).toBe(1)
    expect(await rowOf(shop, call.key)).toMatchObject({ kind: 'r', state: 'in_progress' })
    expect(await kindNow()).toBe('handler')
    // Its owner is gone. The work may not be safe to run again, whatever the attempt before it was.
    await lapse(call.key)
    await recoverer(once).runOnce()
    expect((await rowOf(shop, call.key)).state).toBe('parked')
  })

  test('that it left in doubt is parked by a worker, though it has no time for a look', async () => {
    const once = shop.open()
    const call = makeCall()
    const id = { account: call.account, operation: call.operation, key: call.key }
    await catchError(
      once.execute(call, async () => {
        throw notExecuted(new Error('not now'))
      }),
    )
    await earlier.claim(shop.observer, id)
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'unknown', lease_until = NULL, error_code = 'owner_vanished',
         error_message = '', attempted_at = attempted_at - interval '1 hour' WHERE key = $1`,
      [call.key],
    )
    await recoverer(once).runOnce()
    expect((await rowOf(shop, call.key)).state).toBe('parked')
  })
})
