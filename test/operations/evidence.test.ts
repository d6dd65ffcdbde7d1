import { expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { addEvidence, reaper, reconciler } from '../../src/workers/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { makeTill, payment, payWith } from './till.ts'

const keysLeft = async (shop: Shop) => {
  const { rows } = await shop.observer.query('SELECT call_key FROM onlyonce.evidence ORDER BY call_key')
  return rows.map((row) => row.call_key)
}

test('old evidence is removed, but not what a record waits for', async () => {
  const shop = await openShop()
  const till = makeTill({ idempotent: false, behaviour: 'lose', lookup: 'pending' })
  const pay = payWith(till, { name: 'payments.waiting' })
  const call = payment()
  const once = shop.open()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  const waitedFor = derivedKey({ ...call, operation: 'payments.waiting', step: 'charged' })
  for (const key of ['old', 'young', waitedFor]) {
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_1' } })
  }
  await shop.observer.query(
    "UPDATE onlyonce.evidence SET received_at = now() - interval '91 days' WHERE call_key <> 'young'",
  )
  await reaper(once, { mode: 'delete' }).runOnce()
  expect(await keysLeft(shop)).toEqual([waitedFor, 'young'].sort())
})

test('evidence needs an account and a key', async () => {
  const once = (await openShop()).open()
  const evidence = { account: 'acct_1', key: 'k', result: 1 }
  await expect(addEvidence(once, { ...evidence, key: '' })).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(addEvidence(once, { ...evidence, account: '' })).rejects.toMatchObject({
    code: 'account_invalid',
  })
})

test.each(['delete', 'expire'] as const)(
  'evidence of an earlier life of a key settles no later one, and does not keep its evidence out (%s)',
  async (mode) => {
    const shop = await openShop()
    const once = shop.open()
    const till = makeTill({ idempotent: false })
    const pay = payWith(till, { name: 'payments.again' })
    const call = payment()
    const key = derivedKey({ ...call, operation: 'payments.again', step: 'charged' })
    const told = (id: string) => addEvidence(once, { account: call.account, key, result: { id, amount: 5 } })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    await told('ch_of_the_first_life')
    await shop.observer.query(`UPDATE onlyonce.records SET expires_at = now() - interval '29 days',
      changed_at = now() - interval '30 days', attempted_at = now() - interval '30 days', created_at = now() - interval '30 days'`)
    await reaper(once, { mode }).runOnce()
    Object.assign(till, { behaviour: 'refuse', lookup: 'pending' })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    const due = await shop.observer.query('SELECT look_at > clock_timestamp() AS later FROM onlyonce.records')
    expect(due.rows).toEqual([{ later: true }])
    // What is told now is about this life, and the first word of it stays.
    await told('ch_of_the_second_life')
    await told('ch_of_nobody')
    await reconciler(once).runOnce()
    expect(await once.run(pay, call)).toMatchObject({ value: { charge: 'ch_of_the_second_life' } })
  },
)

test('evidence that came while the call was not answered yet takes the place of what an earlier life has left', async () => {
  const shop = await openShop()
  const once = shop.open()
  const till = makeTill({ idempotent: false, lookup: 'pending' })
  const pay = payWith(till, { name: 'payments.overtaken' })
  const call = payment()
  const key = derivedKey({ ...call, operation: 'payments.overtaken', step: 'charged' })
  await addEvidence(once, { account: call.account, key, result: { id: 'ch_of_an_earlier_life', amount: 5 } })
  await shop.observer.query(`UPDATE onlyonce.evidence SET received_at = now() - interval '1 day'`)
  till.charge = async () => {
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_of_this_life', amount: 5 } })
    throw new Error('socket hang up')
  }
  expect(await once.run(pay, call)).toMatchObject({ value: { charge: 'ch_of_this_life' } })
})
