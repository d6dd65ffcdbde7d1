import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { type Onlyonce, onlyonce } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { beginOutside, type Call, catchError, makeCall, openShop, SECRET, type Shop } from './shop.ts'

const ENCRYPTION = 'the-encryption-of-the-operators-0123456789'
const SIGNED = { by: 'ann@example.com', why: 'ticket 4711' }
const REPLY = { status: 201, headers: { Location: '/orders/7' }, body: '{"id":7}' }

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open({ encryption: ENCRYPTION })
})

/** A record whose outcome nobody knows, as a function leaves it that ends its own transaction. */
async function unknownCall(changes: Partial<Call> = {}): Promise<Call> {
  const call = makeCall(changes)
  await catchError(once.transaction(call, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
  expect((await once.explain(call)).state).toBe('unknown')
  return call
}

async function parkedCall(): Promise<Call> {
  const call = await unknownCall()
  await operator(once).park(call, SIGNED)
  return call
}

async function rowOf({ account, key }: Call) {
  const { rows } = await shop.observer.query(
    'SELECT * FROM onlyonce.records WHERE account = $1 AND key = $2',
    [account, key],
  )
  return rows[0]
}

const retry = (call: Call) => once.execute(call, async () => 'ran again')

describe('resolving', () => {
  test.each(['unknown', 'parked'])('%s with a reply: every retry gets it', async (state) => {
    const heard = makeRecorder()
    const call = state === 'unknown' ? await unknownCall() : await parkedCall()
    const door = shop.open({ encryption: ENCRYPTION, observe: heard })
    await operator(door).resolve(call, { ...SIGNED, reply: REPLY })
    expect(await retry(call)).toEqual({ outcome: 'replayed', value: { id: 7 } })
    expect(heard.of('reconcile_resolved')).toMatchObject([{ id: { key: call.key }, state: 'completed' }])
    const shown = await operator(once).show(call, { reply: true })
    expect(shown.reply).toMatchObject({
      status: 201,
      headers: [
        ['location', '/orders/7'],
        ['content-type', 'application/json'],
      ],
    })
    expect(String(shown.reply?.body)).toBe('{"id":7}')
    expect(shown.audit.at(-1)).toMatchObject({ ...SIGNED, action: 'resolve', from: state, to: 'completed' })
  })

  test('with a text for a route: a call from code is told that it is no value', async () => {
    const call = await unknownCall()
    const reply = { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'paid' }
    await operator(once).resolve(call, { ...SIGNED, reply })
    expect(await catchError(retry(call))).toMatchObject({ code: 'reply_not_json', executed: 'unknown' })
  })

  test('over HTTP gives the retry status, headers and body as the operator gave them', async () => {
    const key = randomUUID()
    const id = { account: 'acct_1', operation: 'orders.http', key }
    const door = shop.open({ encryption: ENCRYPTION, observe: makeRecorder() })
    const route = idempotent(door, { account: () => id.account, operation: id.operation }, () =>
      Response.json({ ran: true }),
    )
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    const send = () =>
      route(new Request('http://shop.example/orders', { method: 'POST', headers, body: '{"amount":5}' }))
    expect(await (await send()).json()).toEqual({ ran: true })
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'unknown', expires_at = NULL, error_code = 'owner_vanished', reply_status = NULL,
         reply_headers = NULL, reply_body = NULL, reply_schema = NULL, reply_key_id = NULL WHERE key = $1`,
      [key],
    )
    expect((await send()).status).toBe(409)
    await operator(door).resolve(id, { ...SIGNED, reply: REPLY })
    const replayed = await send()
    expect(replayed.status).toBe(201)
    expect(replayed.headers.get('location')).toBe('/orders/7')
    expect(replayed.headers.get('content-type')).toBe('application/json')
    expect(replayed.headers.get('idempotent-replayed')).toBe('true')
    expect(await replayed.text()).toBe(REPLY.body)
  })

  test('seals the reply like any other', async () => {
    const call = await unknownCall()
    await operator(once).resolve(call, { ...SIGNED, reply: REPLY })
    const row = await rowOf(call)
    expect(row.reply_key_id).toBe('default')
    expect(row.reply_headers).toBe('[]')
    expect(row.reply_body.includes('id')).toBe(false)
  })

  test.each(['unknown', 'parked'])('%s by allowing a retry: it runs once more', async (state) => {
    const call = state === 'unknown' ? await unknownCall() : await parkedCall()
    await operator(once).resolve(call, { ...SIGNED, allowRetry: true })
    expect((await operator(once).show(call)).state).toBe('retryable')
    expect(await retry(call)).toEqual({ outcome: 'executed', value: 'ran again' })
    expect(await retry(call)).toEqual({ outcome: 'replayed', value: 'ran again' })
    const { audit } = await operator(once).show(call)
    expect(audit.at(-1)).toMatchObject({ action: 'allow_retry', from: state, to: 'retryable' })
  })

  test('keeps the record as long as its operation said, or as the operator says', async () => {
    const dayMs = 86_400_000
    const kept = async (retentionMs?: number) => {
      const call = await unknownCall()
      await shop.observer.query('UPDATE onlyonce.records SET retention_ms = $1 WHERE key = $2', [
        5 * dayMs,
        call.key,
      ])
      const options = { ...SIGNED, allowRetry: true, ...(retentionMs && { retentionMs }) } as const
      await operator(once).resolve(call, options)
      const { record } = await operator(once).show(call)
      return record!.expiresAt! - record!.changedAt
    }
    expect(Math.round((await kept()) / dayMs)).toBe(5)
    expect(Math.round((await kept(2 * dayMs)) / dayMs)).toBe(2)
  })

  test('is refused for what is in progress, finished or not there, and says what to do', async () => {
    const running = makeCall()
    let refused: unknown
    await once.execute(running, async () => {
      refused = await catchError(operator(once).resolve(running, { ...SIGNED, reply: REPLY }))
      return 'done'
    })
    expect(refused).toMatchObject({ code: 'not_resolvable', message: expect.stringContaining('lease') })
    expect(await retry(running)).toEqual({ outcome: 'replayed', value: 'done' })
    const desk = operator(once)
    for (const call of [running, makeCall()]) {
      for (const decide of [
        () => desk.resolve(call, { ...SIGNED, allowRetry: true }),
        () => desk.park(call, SIGNED),
        () => desk.unpark(call, SIGNED),
      ]) {
        expect(await catchError(decide())).toMatchObject({ code: 'not_resolvable', status: 409 })
      }
      expect((await desk.show(call)).audit).toEqual([])
    }
  })
})

describe('another account', () => {
  test('with the same operation and key is another record, and is not touched', async () => {
    const call = await unknownCall()
    const other = await unknownCall({ key: call.key, account: 'acct_2' })
    const nobody = { ...call, account: 'acct_3' }
    await operator(once).resolve(call, { ...SIGNED, reply: REPLY })
    expect(await operator(once).show(other)).toMatchObject({ state: 'unknown', audit: [] })
    expect(await operator(once).show(nobody)).toMatchObject({ state: 'none', record: null, audit: [] })
    const error = await catchError(operator(once).resolve(nobody, { ...SIGNED, reply: REPLY }))
    expect(error).toMatchObject({ code: 'not_resolvable' })
  })
})

describe('parking', () => {
  test('ends automatic attempts, and unparking begins them anew; callers are not told why', async () => {
    const call = await unknownCall()
    await shop.observer.query(
      `UPDATE onlyonce.records SET kind = 'o', version = '1', look_at = now(), looks = 9, waits_for = 'w'
       WHERE key = $1`,
      [call.key],
    )
    const before = await operator(once).show(call)
    await operator(once).park(call, { ...SIGNED, why: 'between us' })
    expect(await rowOf(call)).toMatchObject({ state: 'parked', look_at: null, looks: 9, waits_for: 'w' })
    const told = await retry(call)
    expect(told).toMatchObject({ outcome: 'parked', why: before.record!.failure!.message })
    expect(await catchError(operator(once).park(call, SIGNED))).toMatchObject({ code: 'not_resolvable' })

    await operator(once).unpark(call, SIGNED)
    const row = await rowOf(call)
    expect(row).toMatchObject({ state: 'unknown', looks: 0, waits_for: 'w', look_at: expect.any(Date) })
    expect((await retry(call)).outcome).toBe('unknown')
    expect(await catchError(operator(once).unpark(call, SIGNED))).toMatchObject({ code: 'not_resolvable' })

    await operator(once).resolve(call, { ...SIGNED, allowRetry: true })
    expect(await rowOf(call)).toMatchObject({ state: 'retryable', waits_for: null, look_at: null })
  })

  test('of what is no operation lets it be looked for as well', async () => {
    const call = await parkedCall()
    await operator(once).unpark(call, SIGNED)
    expect(await rowOf(call)).toMatchObject({ state: 'unknown', looks: 0, look_at: expect.any(Date) })
  })
})

describe('the audit', () => {
  test('has every decision, who took it and why, in order, by the database clock', async () => {
    const call = await unknownCall()
    const desk = operator(once)
    await desk.park(call, { by: 'ann', why: 'first look' })
    await desk.unpark(call, { by: 'bob', why: 'the gateway is back' })
    await desk.resolve(call, { by: 'cy', why: 'paid with 4242 4242 4242 4242', reply: REPLY })
    const { audit, attempts, record } = await desk.show(call)
    expect(audit.map(({ seq, by, action, from, to }) => [seq, by, action, from, to])).toEqual([
      [1, 'ann', 'park', 'unknown', 'parked'],
      [2, 'bob', 'unpark', 'parked', 'unknown'],
      [3, 'cy', 'resolve', 'unknown', 'completed'],
    ])
    expect(audit[2]!.why).toBe('paid with [card number]')
    expect(audit.every(({ fence, at }) => fence === record!.fence && at <= record!.changedAt + 1_000)).toBe(
      true,
    )
    expect(attempts.at(-1)).toMatchObject({ outcome: 'completed' })
  })

  test('is only added to, and outlives the record', async () => {
    const call = await parkedCall()
    const where = `WHERE key = '${call.key}'`
    for (const text of [
      `UPDATE onlyonce.audit SET why = 'x' ${where}`,
      `DELETE FROM onlyonce.audit ${where}`,
      'TRUNCATE onlyonce.audit',
    ]) {
      expect(await catchError(shop.observer.query(text))).toMatchObject({ code: 'OO003' })
    }
    await shop.observer.query(`DELETE FROM onlyonce.records ${where}`)
    const shown = await operator(once).show(call)
    expect(shown).toMatchObject({ state: 'none', record: null, audit: [{ action: 'park' }] })
  })

  test('and the record change together or not at all', async () => {
    const call = await unknownCall()
    await shop.observer.query(
      `ALTER TABLE onlyonce.audit ADD CONSTRAINT no_mallory CHECK (decided_by <> 'mallory')`,
    )
    const error = await catchError(operator(once).resolve(call, { ...SIGNED, by: 'mallory', reply: REPLY }))
    expect(error).toMatchObject({ code: '23514' })
    expect((await operator(once).show(call)).state).toBe('unknown')
  })

  test.each([
    [{ by: '', why: 'w' }],
    [{ by: 'ann' }],
    [{ by: 'ann', why: '  ' }],
    [{ by: 'a'.repeat(256), why: 'w' }],
    [{ by: 'ann', why: 'w'.repeat(1_001) }],
    [{ by: 'ann', why: 'w\0' }],
    [{ why: 'w' }],
    [undefined],
  ])('takes no decision by nobody or for no reason: %j', async (signature) => {
    const error = await catchError(operator(once).park(makeCall(), signature as never))
    expect(error).toMatchObject({ code: 'decision_invalid' })
  })
})

describe('two operators', () => {
  test('that decide at once: one wins, the other is told, and the audit has one decision', async () => {
    const desks = [operator(once), operator(shop.open({ encryption: ENCRYPTION }))] as const
    for (let round = 0; round < 10; round += 1) {
      const call = await unknownCall()
      const outcomes = await Promise.allSettled([
        desks[0].resolve(call, { by: 'ann', why: 'w', reply: REPLY }),
        desks[1].resolve(call, { by: 'bob', why: 'w', allowRetry: true }),
      ])
      const lost = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
      expect(lost).toHaveLength(1)
      expect(['record_changed', 'not_resolvable']).toContain(lost[0])
      expect((await desks[0].show(call)).audit).toHaveLength(1)
    }
  })

  test('of whom one decided while the other looked: the later is told', async () => {
    const call = await unknownCall()
    const client = await beginOutside(shop)
    // Taken, and given back as unknown: the state is the same, the fence is not.
    await client.query('UPDATE onlyonce.records SET fence = fence + 1 WHERE key = $1', [call.key])
    const deciding = catchError(operator(once).resolve(call, { ...SIGNED, reply: REPLY }))
    await shop.waitForWaiters(1)
    await client.query('COMMIT')
    expect(await deciding).toMatchObject({ code: 'record_changed', retryable: true })
    const { state, audit } = await operator(once).show(call)
    expect({ state, audit }).toEqual({ state: 'unknown', audit: [] })
  })

  test('that decide upon a page of yesterday are told', async () => {
    const call = await unknownCall()
    const decision = { ...SIGNED, allowRetry: true, fence: 99 } as const
    expect(await catchError(operator(once).resolve(call, decision))).toMatchObject({ code: 'record_changed' })
    await operator(once).resolve(call, { ...decision, fence: 1 })
  })
})

describe('what is refused', () => {
  test.each<readonly [unknown, string]>([
    [{ ...SIGNED }, 'either reply or allowRetry'],
    [{ ...SIGNED, allowRetry: true, reply: REPLY }, 'either reply or allowRetry'],
    [{ ...SIGNED, reply: { status: 99 } }, 'status'],
    [{ ...SIGNED, reply: { status: 200, body: 5 } }, 'body'],
    [{ ...SIGNED, reply: { status: 200, body: 'paid' } }, 'is not JSON'],
    [{ ...SIGNED, reply: { status: 200, headers: { 'Set-Cookie': 'a=b' } } }, 'Set-Cookie'],
    ...['Age', 'Proxy-Authenticate', 'RateLimit', 'Stripe-Should-Retry', 'traceparent', 'X-Request-Id'].map(
      (name) => [{ ...SIGNED, reply: { status: 200, headers: { [name]: 'a' } } }, name] as const,
    ),
    [{ ...SIGNED, reply: { status: 200, headers: { location: 'a\r\nb: c' } } }, 'location'],
    [{ ...SIGNED, allowRetry: true, retentionMs: 0 }, 'retentionMs'],
  ])('%j', async (resolution, why) => {
    const call = await unknownCall()
    await expect(operator(once).resolve(call, resolution as never)).rejects.toThrow(why)
    expect((await once.explain(call)).state).toBe('unknown')
  })

  test('a store without operators, and a process that is closing', async () => {
    expect(() => operator(onlyonce({ store: memory(), secret: SECRET }))).toThrow(/no operators/)
    const closed = shop.open({ encryption: ENCRYPTION })
    await closed.close()
    expect(await catchError(operator(closed).park(makeCall(), SIGNED))).toMatchObject({ code: 'closed' })
  })
})
