import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence, reconciler } from '../../src/workers/index.ts'
import { catchError, openShop, type Shop } from '../contract/shop.ts'
import { makeMemory, parkedPayment, VOID } from './remembered.ts'
import { type Charge, makeTill, payment, payWith } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const isCharge = (value: unknown): Charge => {
  if (typeof (value as Charge)?.amount !== 'number') throw new Error('amount is a number')
  return value as Charge
}

const SCHEMA = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof (value as Charge)?.amount === 'number'
        ? { value }
        : { issues: [{ message: 'a number', path: ['amount'] }] },
  },
} as const

/** An operation whose only call is in doubt. */
async function inDoubt(name: string, result: ((value: unknown) => Charge) | typeof SCHEMA) {
  const once = shop.open()
  const call = payment()
  const sent: string[] = []
  const pay = operation(name, async (op) => {
    const charge: Charge = await op.call('charged', {
      idempotent: false,
      call: async ({ key }): Promise<Charge> => {
        sent.push(key)
        throw new Error('socket hang up')
      },
      result,
    })
    return reply(201, { charge: charge.id })
  })
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  const id = { account: call.account, operation: name, key: call.key }
  const key = derivedKey({ ...id, step: 'charged' })
  const tell = (told: unknown) => addEvidence(once, { account: call.account, key, result: told })
  return { once, call, pay, id, tell, sent }
}

describe('evidence', () => {
  test('is told what became of it', async () => {
    const once = shop.open()
    const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'pending' })
    const pay = payWith(till, { name: 'payments.told_back' })
    const call = payment()
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const key = derivedKey({ ...call, operation: 'payments.told_back', step: 'charged' })
    const evidence = { account: call.account, key, result: { id: 'ch_1', amount: 5 } }
    const kept = { accepted: true, why: 'no_record_waits' }
    expect(await addEvidence(once, { ...evidence, key: call.key })).toEqual(kept)
    expect(await addEvidence(once, { ...evidence, account: 'acct_2' })).toEqual(kept)
    expect(await addEvidence(once, evidence)).toEqual({ accepted: true, why: 'record_waits' })
    expect(await addEvidence(once, { ...evidence, result: { id: 'ch_2', amount: 5 } })).toEqual({
      accepted: false,
      why: 'earlier_evidence_stands',
    })
  })

  test.each([
    ['a function', isCharge, 'amount is a number'],
    ['a schema', SCHEMA, 'amount: a number'],
  ])('of the wrong form is refused by %s, and can be corrected', async (kind, result, why) => {
    const { once, call, pay, id, tell } = await inDoubt(`payments.checked_by_${kind.split(' ')[1]}`, result)
    expect(await tell({ id: 'ch_5' })).toMatchObject({ accepted: true })
    await reconciler(once).runOnce()
    const shown = await operator(once).show(id)
    expect(shown).toMatchObject({ state: 'unknown', record: { failure: { code: 'call_in_doubt' } } })
    expect(shown.record!.failure!.message).toContain(why)
    // It is not looked at again for what was refused.
    const { rows } = await shop.observer.query(
      'SELECT look_at > clock_timestamp() AS later FROM onlyonce.records WHERE key = $1',
      [call.key],
    )
    expect(rows).toEqual([{ later: true }])
    expect(await tell({ id: 'ch_5', amount: 5 })).toEqual({ accepted: true, why: 'record_waits' })
    await reconciler(once).runOnce()
    expect(await once.run(pay, call)).toMatchObject({ value: { charge: 'ch_5' } })
  })
})

test.each(['call', 'find'] as const)(
  'what %s gave in a wrong form does not become durable',
  async (which) => {
    const wrong = { id: 'ch_1' } as Charge
    const name = `payments.wrong_${which}`
    const pay = operation(name, async (op) => {
      await op.call('charged', {
        idempotent: false,
        call: async () => {
          if (which === 'call') return wrong
          throw new Error('socket hang up')
        },
        find: async () => (which === 'find' ? { status: 'found', result: wrong } : { status: 'pending' }),
        result: isCharge,
      })
      return reply(201)
    })
    expect(await shop.open().run(pay, payment())).toMatchObject({ outcome: 'unknown' })
  },
)

test('evidence of the wrong form about a void call is not refused: no new call is sent while it stands', async () => {
  const { once, call, pay, id, tell, sent } = await inDoubt('payments.checked_void', isCharge)
  await operator(once).resolve(id, VOID)
  expect(await tell({ id: 'ch_5' })).toMatchObject({ accepted: true })
  for (let retries = 0; retries < 2; retries += 1) {
    expect(await once.run(pay, call).catch(({ code }) => ({ outcome: code }))).toMatchObject({
      outcome: 'unknown',
    })
    await reconciler(once).runOnce()
  }
  expect(sent).toHaveLength(1)
  const { failure } = (await operator(once).show(id)).record!
  expect(failure!.message).toContain('amount is a number')
})

test('a check that is none is refused', async () => {
  const pay = operation('payments.no_check', async (op) => {
    await op.call('charged', { call: async () => 1, result: 'a number' as never })
    return reply(201)
  })
  expect(await catchError(shop.open().run(pay, payment()))).toMatchObject({ code: 'option_invalid' })
})

test('an operator is shown the results of steps and the evidence, where it is asked for', async () => {
  // Records that are sealed keep processes without the key out of their database.
  const own = await openShop()
  const once = own.open({ encryption: { current: 'a', keys: { a: Buffer.alloc(32, 7) } } })
  const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'pending' })
  const call = payment()
  await once.run(payWith(till, { name: 'payments.inside' }), call)
  const id = { account: call.account, operation: 'payments.inside', key: call.key }
  const key = derivedKey({ ...id, step: 'charged' })
  await addEvidence(once, { account: call.account, key, result: { id: 'ch_7' } })
  expect(await operator(once).show(id)).toMatchObject({ results: null })
  const { results } = await operator(once).show(id, { results: true })
  expect(results).toEqual({
    steps: [{ name: 'payment_created', kind: 'atomic', result: { id: `pay_${call.key}` } }],
    evidence: [{ key, receivedAt: expect.any(Number), result: { id: 'ch_7' } }],
    discarded: [],
  })
  const sealed = await own.observer.query('SELECT result FROM onlyonce.evidence WHERE call_key = $1', [key])
  expect(sealed.rows[0].result.toString('utf8')).not.toContain('ch_7')
})

test('no circle is advised where no call is in doubt', async () => {
  const { once, id } = await parkedPayment(shop, 'payments.no_doubt', makeMemory())
  await shop.observer.query('UPDATE onlyonce.records SET waits_for = NULL WHERE key = $1', [id.key])
  const refused = await catchError(operator(once).resolve(id, VOID))
  expect(refused).toMatchObject({ code: 'not_resolvable' })
  expect(String((refused as Error).message)).toContain('repaired')
})
