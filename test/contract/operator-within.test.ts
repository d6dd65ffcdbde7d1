/** Decisions that join a transaction of the caller's, and requests that are given up. */
import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, type Onlyonce, operation, reply } from '../../src/index.ts'
import { operator, type Signature } from '../../src/operator/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { beginOutside, type Call, catchError, makeCall, openShop, type Shop } from './shop.ts'

const ENCRYPTION = 'the-encryption-of-decisions-0123456789abcdef'
const SIGNED = { by: 'ann@example.com', why: 'ticket 4711' }
const REPLY = { status: 422, headers: { 'content-type': 'application/json' }, body: '{"given":"up"}' }
const GIVEN_UP = { outcome: 'replayed', value: { given: 'up' } }

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open({ encryption: ENCRYPTION })
})

/** Holds something, and then calls somebody who is away, until somebody is there. */
let away = true
let calls = 0
const hold = operation('things.hold', async (op, input: { note: string }) => {
  await op.transaction('held', async (tx) => {
    await tx.query('INSERT INTO effects (note) VALUES ($1)', [input.note])
  })
  await op.call('called', {
    call: async () => {
      calls += 1
      if (away) throw notExecuted()
      return {}
    },
  })
  return op.transaction('done', async () => reply(200, { done: true }))
})

async function retryableCall(): Promise<Call> {
  const call = makeCall({ operation: 'things.hold' })
  away = true
  expect(await catchError(run(call))).toMatchObject({ code: 'unfinished' })
  expect((await once.explain(call)).state).toBe('retryable')
  return call
}

const run = ({ account, key }: Call) => once.run(hold, { account, key, input: { note: key } })

async function unknownCall(): Promise<Call> {
  const call = makeCall()
  await catchError(once.transaction(call, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
  return call
}

const stateOf = async (call: Call) => (await once.explain(call)).state

describe('a decision in a transaction of the caller', () => {
  const decisions: [string, (call: Call, signed: Signature) => Promise<unknown>, string][] = [
    ['resolve', (call, signed) => operator(once).resolve(call, { ...signed, reply: REPLY }), 'completed'],
    [
      'allow_retry',
      (call, signed) => operator(once).resolve(call, { ...signed, allowRetry: true }),
      'retryable',
    ],
    ['park', (call, signed) => operator(once).park(call, signed), 'parked'],
  ]

  test.each(decisions)('stands with what else was written there: %s', async (action, decide, state) => {
    const call = await unknownCall()
    const client = await beginOutside(shop)
    await client.query('INSERT INTO effects (note) VALUES ($1)', [call.key])
    await decide(call, { ...SIGNED, tx: client })
    expect(await stateOf(call)).toBe('unknown')
    await client.query('COMMIT')
    expect(await stateOf(call)).toBe(state)
    expect(await shop.countEffects(call.key)).toBe(1)
    const { audit } = await operator(once).show(call)
    expect(audit).toMatchObject([{ ...SIGNED, action, from: 'unknown', to: state }])
  })

  test.each(decisions)('falls with it: %s', async (_, decide) => {
    const call = await unknownCall()
    const client = await beginOutside(shop)
    await decide(call, { ...SIGNED, tx: client })
    await client.query('ROLLBACK')
    const { state, audit } = await operator(once).show(call)
    expect({ state, audit }).toEqual({ state: 'unknown', audit: [] })
  })

  test('that is refused leaves the transaction as it was', async () => {
    const call = await unknownCall()
    const client = await beginOutside(shop)
    await client.query('INSERT INTO effects (note) VALUES ($1)', [call.key])
    const late = { ...SIGNED, fence: 99, reply: REPLY, tx: client }
    expect(await catchError(operator(once).resolve(call, late))).toMatchObject({ code: 'record_changed' })
    await shop.observer.query(
      `ALTER TABLE onlyonce.audit ADD CONSTRAINT no_trudy CHECK (decided_by <> 'trudy')`,
    )
    const trudy = { by: 'trudy', why: 'w', reply: REPLY, tx: client }
    expect(await catchError(operator(once).resolve(call, trudy))).toMatchObject({ code: '23514' })
    await client.query('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(await stateOf(call)).toBe('unknown')
  })

  test('needs one: a pool would commit it by itself', async () => {
    const call = await unknownCall()
    const given = { ...SIGNED, reply: REPLY, tx: shop.observer }
    expect(await catchError(operator(once).resolve(call, given))).toMatchObject({
      code: 'transaction_required',
    })
    expect(await stateOf(call)).toBe('unknown')
  })

  test('waits for no second connection', async () => {
    const pool = shop.database.pool({ max: 3 })
    const door = shop.open({ encryption: ENCRYPTION, pool })
    await door.start()
    const call = await unknownCall()
    const others = await Promise.all([pool.connect(), pool.connect()])
    const client = await pool.connect()
    await client.query('BEGIN')
    await operator(door).resolve(call, { ...SIGNED, reply: REPLY, tx: client })
    await client.query('COMMIT')
    for (const one of [...others, client]) one.release()
    expect(await stateOf(call)).toBe('completed')
  })
})

describe('giving up', () => {
  test('what is retryable ends it: every retry gets the reply, and nothing runs', async () => {
    const call = await retryableCall()
    const before = calls
    const given = await operator(once).giveUp(call, { ...SIGNED, reply: REPLY })
    expect(given).toEqual({ givenUp: true, state: 'retryable' })
    away = false
    expect(await run(call)).toEqual({ ...GIVEN_UP, status: 422 })
    expect(calls).toBe(before)
    const { audit } = await operator(once).show(call)
    expect(audit).toMatchObject([{ ...SIGNED, action: 'give_up', from: 'retryable', to: 'completed' }])
  })

  test('and what it held are one commit', async () => {
    const call = await retryableCall()
    const letGo = async (end: 'COMMIT' | 'ROLLBACK') => {
      const client = await beginOutside(shop)
      await operator(once).giveUp(call, { ...SIGNED, reply: REPLY, tx: client })
      await client.query('DELETE FROM effects WHERE note = $1', [call.key])
      await client.query(end)
      return [await stateOf(call), await shop.countEffects(call.key)]
    }
    expect(await letGo('ROLLBACK')).toEqual(['retryable', 1])
    expect(await letGo('COMMIT')).toEqual(['completed', 0])
  })

  test('leaves alone what others may have done, or may do', async () => {
    const desk = operator(once)
    const unknown = await unknownCall()
    const parked = await unknownCall()
    await desk.park(parked, SIGNED)
    const done = await retryableCall()
    away = false
    await run(done)
    for (const [call, state] of [
      [unknown, 'unknown'],
      [parked, 'parked'],
      [done, 'completed'],
      [makeCall(), 'none'],
    ] as const) {
      expect(await desk.giveUp(call, { ...SIGNED, reply: REPLY })).toEqual({ givenUp: false, state })
      expect(await stateOf(call)).toBe(state)
    }
    const running = makeCall()
    await once.execute(running, async () => {
      const given = await desk.giveUp(running, { ...SIGNED, reply: REPLY })
      expect(given).toEqual({ givenUp: false, state: 'in_progress' })
      return 'done'
    })
  })

  test('and coming back at the same moment: one of them wins', async () => {
    for (let round = 0; round < 12; round += 1) {
      const call = await retryableCall()
      away = false
      const before = calls
      const [given, came] = await Promise.all([
        operator(once).giveUp(call, { ...SIGNED, reply: REPLY }),
        run(call),
      ])
      if (given.givenUp) expect(came).toEqual({ ...GIVEN_UP, status: 422 })
      else expect(came).toMatchObject({ outcome: 'executed', value: { done: true } })
      expect(calls - before).toBe(given.givenUp ? 0 : 1)
    }
  })

  test('is refused without a reply, a name or a reason', async () => {
    const call = await retryableCall()
    const desk = operator(once)
    expect(await catchError(desk.giveUp(call, SIGNED as never))).toMatchObject({ code: 'option_invalid' })
    expect(await catchError(desk.giveUp(call, { reply: REPLY } as never))).toMatchObject({
      code: 'decision_invalid',
    })
    expect(await stateOf(call)).toBe('retryable')
  })
})
