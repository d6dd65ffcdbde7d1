import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, operation, reply } from '../../src/index.ts'
import { completer } from '../../src/workers/index.ts'
import { catchError, makeGate, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { abandonAt, makeTill, payment, payWith, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const NOW = { graceMs: 1, leaseMs: 5_000, inProgressMaxMs: 5_000 }

test('the result of a call is durable before the next is made', async () => {
  let progress = ''
  const pay = operation('calls.durable', async (op, _: unknown) => {
    await op.call('authorized', { call: async () => 'auth_1' })
    await op.call('captured', {
      call: async () => {
        const { rows } = await shop.observer.query(
          "SELECT convert_from(progress, 'UTF8') AS progress FROM onlyonce.records WHERE key = $1",
          [op.key],
        )
        progress = rows[0].progress
      },
    })
  })
  await shop.open().run(pay, payment())
  expect(progress).toContain('auth_1')
})

test('when an owner is gone in the middle of a call, it is not sent again where nobody dedupes', async () => {
  const gate = makeGate()
  let calls = 0
  const pay = operation('calls.gone', async (op, _: unknown) => {
    await op.call('charged', {
      idempotent: false,
      call: async () => {
        calls += 1
        if (calls === 1) await gate.pass()
      },
    })
  })
  const call = payment()
  const running = catchError(shop.open().run(pay, call))
  await gate.reached
  await shop.observer.query(
    `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 hour' WHERE key = $1`,
    [call.key],
  )
  const once = shop.open({ operations: [pay] })
  expect(await completer(once, NOW).runOnce()).toMatchObject({ done: 1 })
  expect(calls).toBe(1)
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('unknown')
  gate.open()
  expect(await running).toMatchObject({ code: 'lease_lost' })
})

test.each(['returns it', 'gives it in a step'])(
  'an operation that answers 4xx after a call took effect has ended, when it %s',
  async (how) => {
    let calls = 0
    const pay = operation(`calls.declined ${how}`, async (op, _: unknown) => {
      await op.call('charged', {
        call: async () => {
          calls += 1
        },
      })
      const declined = reply(409, { why: 'declined' })
      return how === 'returns it' ? declined : op.transaction('noted', async () => declined)
    })
    const once = shop.open()
    const call = payment()
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', status: 409 })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', status: 409 })
    expect(calls).toBe(1)
  },
)

test('a call that was not executed says nothing about the one before', async () => {
  let calls = 0
  const pay = operation('calls.refused_later', async (op, _: unknown) => {
    await op.call('charged', {
      call: async () => {
        calls += 1
        if (calls === 1) throw new Error('socket hang up')
        throw notExecuted(new Error('connection refused'))
      },
    })
  })
  expect(await shop.open().run(pay, payment())).toMatchObject({ outcome: 'unknown' })
  expect(calls).toBeGreaterThan(1)
})

describe('after the deadline of the request', () => {
  /** What the completer makes of an operation that was left before its call, once `age` was done to its record. */
  async function complete(name: string, lookup: 'away' | 'not_found', visibleWithinMs: number, age: string) {
    const till = makeTill({ lookup })
    const pay = payWith(till, { name, between: abandonAt('created'), visibleWithinMs })
    const call = { ...payment(), ...SHORT, deadlineMs: 60_000 }
    await catchError(shop.open().run(pay, call))
    await shop.observer.query(
      `UPDATE onlyonce.records SET deadline_at = clock_timestamp(), ${age} WHERE key = $1`,
      [call.key],
    )
    const once = shop.open({ operations: [pay] })
    await waitUntil('it is looked at', async () => (await completer(once, NOW).runOnce()).done > 0)
    expect(till).toMatchObject({ calls: 0, looks: 1 })
    return (await once.explain({ ...call, operation: name })).state
  }
  const LONG_AGO = `created_at = created_at - interval '1 hour', attempted_at = attempted_at - interval '1 hour'`

  test('nobody there to ask does not prove that nothing was sent', async () => {
    expect(await complete('calls.away', 'away', 1, LONG_AGO)).toBe('unknown')
  })

  test('the settle window begins when the last owner cannot send any more', async () => {
    expect(await complete('calls.settling', 'not_found', 60_000, LONG_AGO)).toBe('unknown')
    const gone = `${LONG_AGO}, lease_until = lease_until - interval '1 hour'`
    expect(await complete('calls.settled', 'not_found', 60_000, gone)).toBe('retryable')
  })
})
