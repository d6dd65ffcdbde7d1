import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { OnlyonceError } from '../../src/core/errors.ts'
import { LIMITS } from '../../src/entries/limits.ts'
import { operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, makeGate, openShop, type Shop, waitUntil } from '../contract/shop.ts'

const callOf = () => {
  const { account, key } = makeCall()
  return { account, key, input: null }
}

const expireLease = (shop: Shop, key: string) =>
  shop.observer.query(
    `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 hour' WHERE key = $1`,
    [key],
  )

async function rowOf(shop: Shop, key: string) {
  const { rows } = await shop.observer.query('SELECT * FROM onlyonce.records WHERE key = $1', [key])
  return rows[0]
}

test('an owner that knows that its record is lost sends nothing', async () => {
  const shop = await openShop()
  const once = shop.open()
  let sent = 0
  const pay = operation('payments.known_lost', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    const { signal } = op
    await shop.observer.query('UPDATE onlyonce.records SET fence = fence + 1 WHERE key = $1', [op.key])
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    await op.call('charged', {
      timeoutMs: 100,
      call: async () => {
        sent += 1
      },
    })
  })
  await once.run(pay, { ...callOf(), leaseMs: 1_500 }).catch(() => {})
  expect(sent).toBe(0)
})

test('an owner whose lease was handed over by close() sends nothing', async () => {
  const shop = await openShop()
  const once = shop.open()
  const gate = makeGate()
  let sent = 0
  const pay = operation('payments.handed_over', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    await gate.pass()
    await op.call('charged', {
      call: async () => {
        sent += 1
      },
    })
  })
  const running = once.run(pay, callOf()).catch(() => {})
  await gate.reached
  await once.close({ maxMs: 1 })
  gate.open()
  await running
  expect(sent).toBe(0)
})

test('a client that asks often while the answer is "not now" does not wear the record out', async () => {
  const shop = await openShop()
  const once = shop.open()
  let ready = false
  const pay = operation('payments.often', (op, _: unknown) =>
    op.transaction('created', async () => (ready ? reply(201, {}) : reply(429, {}))),
  )
  const call = callOf()
  for (let i = 0; i < LIMITS.ownersMax + 2; i += 1) await once.run(pay, call)
  ready = true
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', status: 201 })
})

test('owners that ended well do not wear a record out that one owner then leaves', async () => {
  const shop = await openShop()
  const once = shop.open()
  const gate = makeGate()
  let now: 'refuse' | 'vanish' | 'end' = 'refuse'
  const pay = operation('payments.one_vanished', async (op, _: unknown) => {
    const created = await op.transaction('created', async () => (now === 'refuse' ? reply(429, {}) : 1))
    if (now === 'vanish') await gate.pass()
    return created
  })
  const call = callOf()
  for (let i = 0; i < LIMITS.ownersMax + 2; i += 1) await once.run(pay, call)
  now = 'vanish'
  const vanished = shop
    .open()
    .run(pay, call)
    .catch(() => {})
  await gate.reached
  await expireLease(shop, call.key)
  now = 'end'
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: 1 })
  gate.open()
  await vanished
})

test('a process without the code of a record does not wear it out', async () => {
  const shop = await openShop()
  const v1 = operation('payments.versions', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    throw new Error('not today')
  })
  const v2 = operation('payments.versions@2', async () => reply(201, {}))
  const call = callOf()
  await shop
    .open()
    .run(v1, call)
    .catch(() => {})
  const newer = shop.open()
  for (let i = 0; i < LIMITS.ownersMax + 2; i += 1) {
    await expect(newer.run(v2, call)).rejects.toMatchObject({ code: 'operation_unknown' })
  }
})

test('an expired record starts over with the new request, and not with the input of the old one', async () => {
  const shop = await openShop()
  const once = shop.open()
  let broken = true
  const pay = operation('payments.expired', async (op, input: { amount: number }) => {
    const noted = await op.transaction('noted', async () => input.amount)
    if (broken) throw new Error('not today')
    return { amount: input.amount, noted }
  })
  const { account, key } = callOf()
  await once.run(pay, { account, key, input: { amount: 5 } }).catch(() => {})
  await shop.observer.query(
    `UPDATE onlyonce.records SET state = 'expired', error_code = NULL, error_message = NULL WHERE key = $1`,
    [key],
  )
  broken = false
  expect(await once.run(pay, { account, key, input: { amount: 7 } })).toMatchObject({
    outcome: 'executed',
    value: { amount: 7, noted: 7 },
  })
})

test('an expired record of a finished operation runs the version that is asked for, and calls', async () => {
  const shop = await openShop()
  let calls = 0
  const make = (name: string) =>
    operation(name, async (op, _: unknown) => {
      await op.call('charged', {
        idempotent: false,
        call: async () => {
          calls += 1
        },
      })
      return { name }
    })
  const call = callOf()
  await shop.open().run(make('payments.expired_done'), call)
  await shop.observer.query(
    `UPDATE onlyonce.records SET state = 'expired', reply_status = NULL, reply_headers = NULL, reply_body = NULL,
       reply_schema = NULL WHERE key = $1`,
    [call.key],
  )
  expect(await shop.open().run(make('payments.expired_done@2'), call)).toMatchObject({
    outcome: 'executed',
    value: { name: 'payments.expired_done@2' },
  })
  expect(calls).toBe(2)
})

test('a retry that meets an open step whose lease has run out is told that it is in progress', async () => {
  const shop = await openShop()
  const gate = makeGate()
  const pay = operation('payments.open_step', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      await gate.pass()
      return reply(201, {})
    })
  })
  const call = { ...callOf(), leaseMs: 600 }
  const running = shop.open().run(pay, call)
  await gate.reached
  await waitUntil('the lease is over', async () => {
    const { rows } = await shop.observer.query(
      'SELECT lease_until <= clock_timestamp() AS over FROM onlyonce.records WHERE key = $1',
      [call.key],
    )
    return rows[0].over
  })
  const other = shop.open({ store: { lockWaitMaxMs: 300 } })
  expect(await other.run(pay, { ...call, deadlineMs: 1_500 })).toMatchObject({ outcome: 'in_progress' })
  gate.open()
  expect(await running).toMatchObject({ outcome: 'executed' })
})

test('a lease is not believed to be longer than it is when the first answer to a claim was lost', async () => {
  const shop = await openShop()
  let lost = false
  const once = shop.open({
    crashPoint: (point) => {
      if (point !== 'operation.claim.after' || lost) return
      lost = true
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
      throw new OnlyonceError('store_unavailable')
    },
  })
  let leftMs = 0
  const pay = operation('payments.lease_overrated', async (op, _: unknown) => {
    await op.call('charged', {
      timeoutMs: 900,
      call: async () => {
        const { rows } = await shop.observer.query(
          `SELECT extract(epoch FROM lease_until - clock_timestamp()) * 1000 AS left_ms
           FROM onlyonce.records WHERE key = $1`,
          [op.key],
        )
        leftMs = Number(rows[0].left_ms)
      },
    })
  })
  await once.run(pay, { ...callOf(), leaseMs: 1_500 })
  expect(leftMs).toBeGreaterThan(800)
})

test('a write of results that comes late takes no later ones back', async () => {
  const shop = await openShop()
  const once = shop.open()
  const gate = makeGate()
  let late: { progress: Buffer; points: number; recoveryPoint: string } | undefined
  const pay = operation('payments.late_write', async (op, _: unknown) => {
    await op.call('first', { call: async () => 1 })
    await op.call('second', { call: async () => 2 })
    late = await rowOf(shop, op.key)
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    await gate.pass()
    return {}
  })
  const call = callOf()
  const running = once.run(pay, call)
  await gate.reached
  const row = await rowOf(shop, call.key)
  expect(row.points).toBe(3)
  // The write before `second`, as the server gets to it when its connection had long been given up.
  const { writePoints } = await import('../../src/store/postgres/sql/operations.ts')
  await shop.observer.query(writePoints('onlyonce'), [
    ...[call.account, pay.name, call.key, row.fence, row.attempt_id, 30_000],
    ...[late!.points, late!.recoveryPoint, late!.progress, null],
  ])
  expect((await rowOf(shop, call.key)).points).toBe(3)
  gate.open()
  await running
})

test('the lifetime of a key is counted from the commit before the first attempt, whoever looks', async () => {
  const shop = await openShop()
  let calls = 0
  const pay = operation('payments.lifetime', async (op, _: unknown) => {
    await op.call('charged', {
      keyLifetimeMs: 60_000,
      call: async () => {
        calls += 1
        throw new Error('socket hang up')
      },
    })
  })
  const once = shop.open({ reconcileAfterMs: [1, 1, 1, 1] })
  const call = callOf()
  await once.run(pay, call)
  expect(calls).toBe(4)
  const later = (by: string) =>
    shop.observer.query(
      `UPDATE onlyonce.records SET point_at = point_at - $2::interval, look_at = clock_timestamp() WHERE key = $1`,
      [call.key, by],
    )
  await later('30 seconds')
  await reconciler(once).runOnce()
  expect(calls).toBe(8)
  await later('25 seconds')
  await reconciler(once).runOnce()
  expect(calls).toBe(8)
})

test('a lost record, deleted and made again, is not the record of its old owner', async () => {
  const shop = await openShop()
  const gate = makeGate()
  const pay = operation('payments.remade', async (op, input: string) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} ${input} noted`))
    if (input === 'old') await gate.pass()
    return op.transaction('settled', (tx) => leaveEffect(tx, `${op.key} ${input} settled`))
  })
  const { account, key } = callOf()
  const running = shop
    .open()
    .run(pay, { account, key, input: 'old' })
    .catch(({ code }) => code)
  await gate.reached
  await shop.observer.query('DELETE FROM onlyonce.records WHERE key = $1', [key])
  await shop.open().run(pay, { account, key, input: 'new' })
  gate.open()
  expect(await running).toBe('lease_lost')
  expect(await shop.countEffects(`${key} old settled`)).toBe(0)
})

test('a moved record is found by its key, and VACUUM harms no step', async () => {
  const shop = await openShop()
  const pay = operation('payments.moved', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    await shop.observer.query('UPDATE onlyonce.records SET trace = $2 WHERE key = $1', [op.key, randomUUID()])
    await shop.observer.query('VACUUM FULL onlyonce.records')
    return op.transaction('settled', (tx) => leaveEffect(tx, `${op.key} settled`))
  })
  const call = callOf()
  expect(await shop.open().run(pay, call)).toMatchObject({ outcome: 'executed' })
  expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
})

test('an abandoned step is finished once by two completers', async () => {
  const shop = await openShop()
  const gate = makeGate()
  const pay = operation('payments.two_completers', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    if ((await rowOf(shop, op.key)).fence === '1') await gate.pass()
    return op.transaction('settled', (tx) => leaveEffect(tx, `${op.key} settled`))
  })
  const call = callOf()
  const running = shop
    .open()
    .run(pay, call)
    .catch(({ code }) => code)
  await gate.reached
  await expireLease(shop, call.key)
  const doors = [shop.open({ operations: [pay] }), shop.open({ operations: [pay] })]
  await Promise.all(doors.map((door) => completer(door, { graceMs: 1 }).runOnce()))
  gate.open()
  expect(await running).toBe('lease_lost')
  expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
})
