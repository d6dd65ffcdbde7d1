import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, OnlyonceError, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence } from '../../src/workers/index.ts'
import { catchError, makeCall, openShop, type Shop, waitUntil } from '../contract/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const RETRY = { by: 'ann', why: 'the processor has no trace of it', allowRetry: true } as const
const DECISIONS = {
  'a retry is allowed': RETRY,
  'its call is void': { ...RETRY, earlierCallIsVoid: true },
} as const
const NOT_PROVED = { code: 'not_applied', executed: 'not_by_this_request' }
const saysNotExecuted = () => Promise.reject(notExecuted())

/** A payment whose call was made and not answered, and about which an operator has decided. */
async function decidedPayment(decision: (typeof DECISIONS)[keyof typeof DECISIONS]) {
  const till = { now: 'loses' as 'loses' | 'refuses' | 'vanishes' }
  const name = `truth.decided_${randomUUID()}`
  const pay = operation(name, async (op) => {
    if (till.now === 'vanishes') throw new OnlyonceError('lease_lost')
    const charge = await op.call('charged', {
      call: () => (till.now === 'loses' ? Promise.reject(new Error('socket hang up')) : saysNotExecuted()),
    })
    return reply(201, { charge })
  })
  const once = shop.open({ reconcileAfterMs: [600_000] })
  const asked = { account: 'acct_1', key: randomUUID(), input: null }
  const call = { ...asked, operation: name }
  expect(await once.run(pay, asked)).toMatchObject({ outcome: 'unknown' })
  const { inDoubt } = await operator(once).show(call)
  await operator(once).resolve(call, decision)
  till.now = 'refuses'
  return { once, pay, asked, call, till, callKey: inDoubt!.key }
}

describe('an operator who decides what no program knows proves nothing:', () => {
  describe.each(Object.entries(DECISIONS))('%s', (_, decision) => {
    test('the next attempts of the operation did nothing, and earlier ones may have', async () => {
      const { once, pay, asked, call } = await decidedPayment(decision)
      for (const _ of [1, 2]) {
        expect(await catchError(once.run(pay, asked))).toMatchObject(NOT_PROVED)
        expect(await once.explain(call)).toMatchObject({
          state: 'retryable',
          why: expect.stringContaining('may have had effects'),
        })
      }
    })

    test('and so it is when an owner has vanished since', async () => {
      const { once, pay, asked, till } = await decidedPayment(decision)
      till.now = 'vanishes'
      await catchError(once.run(pay, asked))
      await shop.observer.query(
        `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 minute' WHERE key = $1`,
        [asked.key],
      )
      const early = operation(pay.name, (op) => op.transaction('refused', saysNotExecuted))
      const other = shop.open()
      // The first takes the record from the owner that vanished, the second what the first has left.
      for (const _ of [1, 2]) expect(await catchError(other.run(early, asked))).toMatchObject(NOT_PROVED)
    })

    test.each(['handler', 'transaction'] as const)('by a %s of the same name', async (how) => {
      const { once, call } = await decidedPayment(decision)
      for (const _ of [1, 2])
        expect(
          await catchError(once[how === 'handler' ? 'execute' : how](call, saysNotExecuted)),
        ).toMatchObject(NOT_PROVED)
    })
  })

  test('what was declared void and has happened counts, behind an attempt that did nothing', async () => {
    const { once, pay, asked, callKey } = await decidedPayment(DECISIONS['its call is void'])
    expect(await catchError(once.run(pay, asked))).toMatchObject(NOT_PROVED)
    await addEvidence(once, { account: asked.account, key: callKey, result: 'ch_1' })
    expect(await once.run(pay, asked)).toMatchObject({ outcome: 'executed', value: { charge: 'ch_1' } })
  })

  test('of a handler that vanished', async () => {
    const call = makeCall({ operation: 'truth.decided_handler' })
    const once = shop.open()
    const stalls = once.execute({ ...call, inProgressMaxMs: 50 }, () => new Promise(() => {}))
    expect(await catchError(stalls)).toMatchObject({ code: 'outcome_unknown' })
    await waitUntil('it is in doubt', async () => (await once.explain(call)).state === 'unknown')
    await operator(once).resolve(call, RETRY)
    for (const _ of [1, 2])
      expect(await catchError(once.execute(call, saysNotExecuted))).toMatchObject(NOT_PROVED)
  })
})
