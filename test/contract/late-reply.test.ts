import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Signal } from '../../src/entries/observe.ts'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { notExecuted, type Onlyonce, onlyonce } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { catchError, makeCall, makeGate, openShop, SECRET, type Shop, waitUntil } from './shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>
let other: Onlyonce<PostgresTx>
const SIGNED = { by: 'ann', why: 'looked at it' }
const REPLY = { status: 201, body: '"by an operator"' }

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  other = shop.open()
})

const endLease = (key: string) =>
  shop.observer.query('UPDATE onlyonce.records SET lease_until = clock_timestamp() WHERE key = $1', [key])
const stateOf = async (key: string) =>
  (await shop.observer.query('SELECT state FROM onlyonce.records WHERE key = $1', [key])).rows[0]?.state

/** How many seconds after it became unknown a record is looked at. */
const graceOf = async (key: string) => {
  const text =
    'SELECT round(extract(epoch FROM look_at - changed_at))::int AS s FROM onlyonce.records WHERE key = $1'
  return (await shop.observer.query(text, [key])).rows[0]?.s
}

/** An owner that stalls: its lease is over, it is at work all the same, and it ends when it is told to. */
async function stalled(end: () => Promise<unknown> = async () => 'late', rerunnable = false) {
  const call = { ...makeCall(), leaseMs: 60_000, rerunnable }
  const gate = makeGate()
  const told = once
    .execute(call, async () => {
      await gate.pass()
      return await end()
    })
    .catch((error) => ({ code: error.code }))
  await gate.reached
  await endLease(call.key)
  return { call, told, answer: gate.open }
}

describe('the late reply of an owner', () => {
  test('completes a record that was given up as unknown', async () => {
    const { call, told, answer } = await stalled()
    expect(await other.execute(call, async () => 'twice')).toMatchObject({ outcome: 'unknown' })
    answer()
    expect(await told).toEqual({ outcome: 'executed', value: 'late' })
    expect(await other.execute(call, async () => 'twice')).toEqual({ outcome: 'replayed', value: 'late' })
  })

  test('that nothing happened frees a record that was given up', async () => {
    const { call, told, answer } = await stalled(() => Promise.reject(notExecuted()))
    expect(await other.execute(call, async () => 'twice')).toMatchObject({ outcome: 'unknown' })
    answer()
    expect(await told).toMatchObject({ code: 'not_executed' })
    expect(await other.execute(call, async () => 'again')).toEqual({ outcome: 'executed', value: 'again' })
  })

  test.each([
    [
      'resolve',
      (call: typeof SIGNED & never) => operator(other).resolve(call, { ...SIGNED, reply: REPLY }),
      'completed',
    ],
    [
      'allow a retry',
      (call: never) => operator(other).resolve(call, { ...SIGNED, allowRetry: true }),
      'retryable',
    ],
    ['park', (call: never) => operator(other).park(call, SIGNED), 'parked'],
  ] as const)('counts no more when an operator has decided to %s', async (_, decide, state) => {
    const { call, told, answer } = await stalled()
    await decide(call as never)
    expect(await stateOf(call.key)).toBe(state)
    answer()
    expect(await told).toEqual({ code: 'lease_lost' })
    expect(await stateOf(call.key)).toBe(state)
  })

  test('counts again when the operator lets it be found out again', async () => {
    const { call, told, answer } = await stalled()
    await operator(other).park(call, SIGNED)
    await operator(other).unpark(call, SIGNED)
    answer()
    expect(await told).toEqual({ outcome: 'executed', value: 'late' })
  })

  test('is kept although the route has given the handler up', async () => {
    const key = randomUUID()
    const gate = makeGate()
    const policy = { account: () => 'acct_1', operation: 'orders.create', inProgressMaxMs: 50 }
    const route = idempotent(once, policy, async () => {
      await gate.pass()
      return Response.json({ late: true }, { status: 201 })
    })
    const send = () =>
      route(new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key } }))
    const first = await send()
    expect(await first.json()).toMatchObject({ code: 'outcome_unknown' })
    const id = { account: 'acct_1', operation: 'orders.create', key }
    // The owner lives: its record says that it has not answered, not that it vanished.
    await waitUntil('it is in doubt', async () => (await other.explain(id)).state === 'unknown')
    expect((await other.explain(id)).why).toContain('handler_timed_out')
    gate.open()
    await waitUntil('it is completed', async () => (await other.explain(id)).state === 'completed')
    const again = await send()
    expect([again.status, await again.json()]).toEqual([201, { late: true }])
  })

  test('that the route has given up changes nothing where an operator has decided', async () => {
    const key = randomUUID()
    const gate = makeGate()
    const lost = makeGate()
    const observe = { signal: (told: Signal) => void (told.signal === 'lease_lost' && lost.pass()) }
    const policy = { account: () => 'acct_1', operation: 'orders.decided', inProgressMaxMs: 50 }
    const route = idempotent(shop.open({ observe }), policy, async () => {
      await gate.pass()
      return Response.json({ late: true }, { status: 201 })
    })
    const send = () =>
      route(new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key } }))
    await send()
    await waitUntil('it is in doubt', async () => (await stateOf(key)) === 'unknown')
    const id = { account: 'acct_1', operation: 'orders.decided', key }
    await operator(other).resolve(id, { ...SIGNED, reply: REPLY })
    gate.open()
    await lost.reached
    expect(await (await send()).json()).toBe('by an operator')
  })

  test('is waited for in doubt, also where a last sign of life is under way when the owner is given up', async () => {
    const gate = makeGate()
    const beaten: Promise<void>[] = []
    const store = memory()
    const extend = store.extend.bind(store)
    store.extend = (...given) => {
      const beat = gate.pass().then(() => extend(...given))
      beaten.push(beat)
      return beat
    }
    const slow = onlyonce({ store, secret: SECRET, background: false })
    const policy = {
      account: () => 'acct_1',
      operation: 'orders.beaten',
      leaseMs: 60,
      inProgressMaxMs: 100,
    }
    const route = idempotent(slow, policy, () => new Promise<Response>(() => {}))
    const key = randomUUID()
    await route(new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key } }))
    gate.open()
    await Promise.allSettled(beaten)
    const id = { account: 'acct_1', operation: 'orders.beaten', key }
    await waitUntil('it is in doubt', async () => (await slow.explain(id)).state === 'unknown', 2_000)
    expect(beaten.length).toBeGreaterThan(0)
    expect((await slow.explain(id)).why).toContain('handler_timed_out')
  })

  test('is waited for as long as graceMs says, before anybody looks', async () => {
    const key = randomUUID()
    const gate = makeGate()
    const patient = shop.open({ graceMs: 77_000 })
    const policy = { account: () => 'acct_1', operation: 'orders.grace', inProgressMaxMs: 50 }
    const route = idempotent(patient, policy, async () => {
      await gate.pass()
      return new Response()
    })
    await route(new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key } }))
    await waitUntil('it is in doubt', async () => (await stateOf(key)) === 'unknown')
    expect(await graceOf(key)).toBe(77)
    gate.open()
  })

  test('is refused when another has taken the record', async () => {
    const { call, told, answer } = await stalled(undefined, true)
    expect(await other.execute(call, async () => 'next')).toEqual({ outcome: 'executed', value: 'next' })
    answer()
    expect(await told).toEqual({ code: 'lease_lost' })
  })
})

describe('an operator', () => {
  test('decides nothing while the lease lives', async () => {
    const call = makeCall()
    const gate = makeGate()
    const told = once.execute(call, () => gate.pass())
    await gate.reached
    for (const decide of [
      () => operator(other).resolve(call, { ...SIGNED, reply: REPLY }),
      () => operator(other).park(call, SIGNED),
    ]) {
      const error = await catchError(decide())
      expect(error).toMatchObject({ code: 'not_resolvable', message: expect.stringContaining('lease') })
    }
    gate.open()
    await told
  })

  test('decides about an operation whose owner vanished, and keeps until when it may have called', async () => {
    const key = randomUUID()
    await shop.observer.query(
      `INSERT INTO onlyonce.records (account, operation, key, state, fence, attempt_id, owner, attempted_at, fingerprint,
         fingerprint_key_id, created_at, changed_at, lease_until, version, sent_until, kind)
       SELECT 'acct_1', 'pay', $1, 'in_progress', 1, gen_random_uuid(), 'gone', now(), '\\x00', fingerprint_key_id, now(), now(),
         now() - interval '1 second', '1', now() - interval '1 hour', 'o'
       FROM onlyonce.records LIMIT 1`,
      [key],
    )
    await operator(other).park({ account: 'acct_1', operation: 'pay', key }, SIGNED)
    const { rows } = await shop.observer.query(
      `SELECT state, sent_until > now() - interval '1 minute' AS kept FROM onlyonce.records WHERE key = $1`,
      [key],
    )
    expect(rows).toEqual([{ state: 'parked', kept: true }])
  })
})
