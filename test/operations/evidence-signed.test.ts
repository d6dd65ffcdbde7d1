import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence } from '../../src/workers/index.ts'
import { beginOutside, catchError, openShop, type Shop } from '../contract/shop.ts'
import { VOID } from './remembered.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const SIGNED = { by: 'ann@example.com', why: 'seen at the processor: 4242 4242 4242 4242' }
const NOTED = { by: 'ann@example.com', why: expect.stringMatching(/^seen at the processor: \[card/) }

/** A payment whose call was made and not answered. */
async function paymentInDoubt() {
  const pay = operation(`evidence.${randomUUID()}`, async (op) => {
    const call = () => Promise.reject(new Error('socket hang up'))
    return reply(201, await op.call('charged', { idempotent: false, call }))
  })
  const once = shop.open({ reconcileAfterMs: [600_000] })
  const call = { account: 'acct_1', key: randomUUID(), input: null }
  const id = { ...call, operation: pay.name }
  await once.run(pay, call)
  const desk = operator(once)
  const { inDoubt, record } = await desk.show(id)
  const evidence = { account: id.account, key: inDoubt!.key, result: { id: 'ch_42' } }
  return { once, desk, id, evidence, fence: record!.fence }
}

type InDoubt = Awaited<ReturnType<typeof paymentInDoubt>>

/** Another entry of the same record is written, and not committed yet. */
async function noteMeanwhile({ id }: InDoubt) {
  const other = await beginOutside(shop)
  await other.query(
    `INSERT INTO onlyonce.audit (account, operation, key, seq, at, decided_by, why, action, from_state, to_state, fence)
     VALUES ($1, $2, $3, 1, now(), 'bob', 'he says', 'park', 'unknown', 'parked', 1)`,
    [id.account, id.operation, id.key],
  )
  return other
}

describe('evidence that a person tells', () => {
  test('stands in the audit of the record that waits for it, beside what was decided', async () => {
    const { once, desk, id, evidence, fence } = await paymentInDoubt()
    await desk.park(id, SIGNED)
    expect(await addEvidence(once, { ...evidence, ...SIGNED })).toEqual({
      accepted: true,
      why: 'record_waits',
    })
    await desk.unpark(id, SIGNED)
    const { audit, state } = await desk.show(id)
    const told = { action: 'add_evidence', from: 'parked', to: 'parked', fence, callKey: evidence.key }
    expect(audit).toMatchObject([{ action: 'park' }, { seq: 2, ...NOTED, ...told }, { action: 'unpark' }])
    expect(state).toBe('unknown')
  })

  test('leaves no entry where earlier evidence stands, nor does what a webhook tells', async () => {
    const { once, desk, id, evidence } = await paymentInDoubt()
    expect(await addEvidence(once, evidence)).toMatchObject({ accepted: true })
    expect(await addEvidence(once, { ...evidence, ...SIGNED })).toMatchObject({ accepted: false })
    expect((await desk.show(id)).audit).toEqual([])
  })

  test('is refused without a reason, and without a name', async () => {
    const { once, desk, id, evidence } = await paymentInDoubt()
    for (const half of [{ by: 'ann' }, { why: 'seen' }, { by: '', why: 'seen' }, { by: 'ann', why: ' ' }])
      expect(await catchError(addEvidence(once, { ...evidence, ...half }))).toMatchObject({
        code: 'decision_invalid',
      })
    expect(await addEvidence(once, { ...evidence, ...SIGNED })).toMatchObject({ accepted: true })
    expect((await desk.show(id)).audit).toHaveLength(1)
  })

  test('about a void call stands in the audit too, and hides no decision', async () => {
    const { once, desk, id, evidence } = await paymentInDoubt()
    await desk.resolve(id, VOID)
    await desk.giveUp(id, { ...SIGNED, reply: { status: 410, body: '"gone"' } })
    expect(await addEvidence(once, { ...evidence, ...SIGNED })).toMatchObject({ why: 'call_is_void' })
    const { audit, why } = await desk.show(id)
    expect(audit.map(({ action }) => action)).toEqual(['void_call', 'give_up', 'add_evidence'])
    expect(why).toContain('An operator gave it up')
  })

  test('is numbered again where another entry of the same moment came first', async () => {
    const payment = await paymentInDoubt()
    const { once, desk, id, evidence } = payment
    const other = await noteMeanwhile(payment)
    const telling = addEvidence(once, { ...evidence, ...SIGNED })
    await shop.waitForWaiters(1)
    await other.query('COMMIT')
    expect(await telling).toMatchObject({ accepted: true })
    expect((await desk.show(id)).audit).toMatchObject([{ by: 'bob' }, { seq: 2, action: 'add_evidence' }])
  })

  test('makes no decision of the same moment fail', async () => {
    const payment = await paymentInDoubt()
    const { desk, id } = payment
    const other = await noteMeanwhile(payment)
    const parking = desk.park(id, SIGNED)
    await shop.waitForWaiters(1)
    await other.query('COMMIT')
    await parking
    expect((await desk.show(id)).audit).toMatchObject([{ by: 'bob' }, { seq: 2, action: 'park' }])
  })
})
