import { expect, test } from 'vitest'
import { addEvidence, derivedKey, reaper } from '../../src/index.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { makeTill, payment, payWith } from './till.ts'

const keysLeft = async (shop: Shop) => {
  const { rows } = await shop.observer.query('SELECT call_key FROM onlyonce.evidence ORDER BY call_key')
  return rows.map((row) => row.call_key)
}

test('old evidence is removed, but not what a record waits for', async () => {
  const shop = await openShop()
  const till = makeTill({ dedupes: false, behaviour: 'lose', lookup: 'pending' })
  const pay = payWith(till, { name: 'payments.waiting' })
  const call = payment()
  const once = shop.open()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  const waited_for = derivedKey({ ...call, operation: 'payments.waiting', step: 'charged' })
  for (const key of ['old', 'young', waited_for]) {
    await addEvidence(once, { account: call.account, key, result: { id: 'ch_1' } })
  }
  await shop.observer.query(
    "UPDATE onlyonce.evidence SET received_at = now() - interval '91 days' WHERE call_key <> 'young'",
  )
  await reaper(once, { mode: 'delete' }).runOnce()
  expect(await keysLeft(shop)).toEqual([waited_for, 'young'].sort())
})

test('evidence needs an account and a key', async () => {
  const once = (await openShop()).open()
  const evidence = { account: 'acct_1', key: 'k', result: 1 }
  await expect(addEvidence(once, { ...evidence, key: '' })).rejects.toMatchObject({ code: 'option_invalid' })
  await expect(addEvidence(once, { ...evidence, account: '' })).rejects.toMatchObject({
    code: 'account_invalid',
  })
})
