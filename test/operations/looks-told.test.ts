import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, operation } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { completer, reconciler, recoverer } from '../../src/workers/index.ts'
import { catchError, makeCall, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { lookUntilParked } from './remembered.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const change = (key: string, set: string) =>
  shop.observer.query(`UPDATE onlyonce.records SET ${set} WHERE key = $1`, [key])

describe('how often a record was looked at is told', () => {
  test('of an operation that is parked, with the last look', async () => {
    const lost = () => Promise.reject(new Error('socket hang up'))
    const pay = operation('looks.operation', (op) => op.call('charged', { idempotent: false, call: lost }))
    const once = shop.open({ reconcileAfterMs: [1, 1, 1], operations: [pay] })
    const call = { account: 'acct_1', key: randomUUID(), input: null }
    const id = { ...call, operation: pay.name }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect((await operator(once).show(id)).record).toMatchObject({ state: 'unknown', looks: 0 })
    await lookUntilParked({ once, id })
    const { record, attempts } = await operator(once).show(id)
    expect(record).toMatchObject({ state: 'parked', looks: 3 })
    // The first attempt was no look.
    expect(attempts).toHaveLength(4)
  })

  test('of a handler that is parked, with the last look', async () => {
    const call = makeCall({ operation: 'looks.handler' })
    const recover = { [call.operation]: () => ({ status: 'cannot_tell' as const }) }
    const once = shop.open({ recover, reconcileAfterMs: [1, 1] })
    await catchError(once.execute({ ...call, inProgressMaxMs: 20 }, () => new Promise(() => {})))
    await waitUntil('it is parked', async () => {
      await change(call.key, `look_at = now() - interval '1 minute'`)
      await recoverer(once).runOnce()
      return (await once.explain(call)).state === 'parked'
    })
    expect((await operator(once).show(call)).record).toMatchObject({ state: 'parked', looks: 3 })
  })
})

describe('an attempt is told to have ended', () => {
  test('when its record was left, and not when the next attempt began', async () => {
    const pay = operation('ended.operation', (op) =>
      op.call('charged', { idempotent: false, call: () => Promise.reject(new Error('socket hang up')) }),
    )
    const once = shop.open({ reconcileAfterMs: [1, 600_000], operations: [pay] })
    const call = { account: 'acct_1', key: randomUUID(), input: null }
    const id = { ...call, operation: pay.name }
    await once.run(pay, call)
    await change(
      call.key,
      `changed_at = '2026-01-01T00:00:01Z', attempted_at = '2026-01-01', look_at = now()`,
    )
    await reconciler(once).runOnce()
    const endedAt = Date.parse('2026-01-01T00:00:01Z')
    expect((await once.explain(id)).attempts).toMatchObject([{ outcome: 'unknown', endedAt }, {}])
  })

  test('when its lease was over, where it was abandoned', async () => {
    let answers = false
    const pay = operation('ended.abandoned', (op) =>
      op.call('charged', { call: async () => (answers ? 'ch_1' : new Promise<string>(() => {})) }),
    )
    const once = shop.open({ operations: [pay] })
    const call = { account: 'acct_1', key: randomUUID(), input: null }
    await catchError(once.run(pay, { ...call, inProgressMaxMs: 20 }))
    answers = true
    // The last sign of life may be on its way, and would take this back.
    await waitUntil('it is completed', async () => {
      await change(call.key, `lease_until = '2026-01-01T00:00:02Z', attempted_at = '2026-01-01'`)
      return (await completer(once).runOnce()).done === 1
    })
    const endedAt = Date.parse('2026-01-01T00:00:02Z')
    const { attempts } = await once.explain({ ...call, operation: pay.name })
    expect(attempts).toMatchObject([{ outcome: 'abandoned', endedAt }, {}])
  })

  test('of a handler and of a transaction too', async () => {
    const once = shop.open()
    for (const how of ['handler', 'transaction'] as const) {
      const call = makeCall({ operation: `ended.${how}` })
      await catchError(once[how === 'handler' ? 'execute' : how](call, () => Promise.reject(notExecuted())))
      await change(call.key, `changed_at = '2026-01-01T00:00:03Z', attempted_at = '2026-01-01'`)
      await once[how === 'handler' ? 'execute' : how](call, async () => 'done')
      const endedAt = Date.parse('2026-01-01T00:00:03Z')
      const { attempts } = await once.explain(call)
      expect(attempts).toMatchObject([{ outcome: 'retryable', endedAt }, { outcome: 'completed' }])
    }
  })
})
