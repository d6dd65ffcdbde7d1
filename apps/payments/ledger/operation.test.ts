import { operation } from 'onlyonce'
import { expect, it } from 'vitest'
import { openShop } from '../../../test/contract/shop.ts'
import { migrate } from '../database/migrate.ts'
import {
  authorizationLines,
  availableOf,
  balances,
  captureLines,
  lockBalance,
  post,
  reverse,
  transferOutLines,
  verify,
} from './index.ts'

const account = 'acct_a:test'
const eur = (amount: number) => ({ amount, currency: 'EUR' })

/** A hold in one commit, its capture in another. */
const pay = operation('payments.pay', async (op, { id, amount }: { id: string; amount: number }) => {
  const hold = { kind: 'authorization', source: id }
  await op.transaction('held', async (tx) => {
    await post(tx, { account, ...hold, state: 'pending', lines: authorizationLines(eur(amount)) })
  })
  return op.transaction('captured', async (tx) => {
    await reverse(tx, { account, kind: 'release', source: id, of: hold })
    await post(tx, {
      account,
      kind: 'capture',
      source: id,
      state: 'posted',
      lines: captureLines(eur(amount)),
    })
    return id
  })
})

const send = operation('transfers.send', async (op, { id, amount }: { id: string; amount: number }) =>
  op.transaction(
    'debited',
    async (tx) => {
      await lockBalance(tx, account, 'EUR')
      if ((await availableOf(tx, account, 'EUR')) < BigInt(amount)) return false
      const lines = transferOutLines(eur(amount))
      await post(tx, { account, kind: 'transfer_out', source: id, state: 'posted', lines })
      return true
    },
    { isolation: 'read committed' },
  ),
)

it('operations post once, side by side, and never overdraw', async () => {
  const shop = await openShop()
  const pool = shop.database.direct({ max: 4 })
  await migrate(pool)
  const once = shop.open()
  const names = Array.from({ length: 30 }, (_, i) => `pay_${i}`)
  // Each under its key three times: two of them find it done, or in progress.
  const payments = [...names, ...names, ...names].map((id) =>
    once.run(pay, { account, key: `key-of-${id}`, input: { id, amount: 10 } }),
  )
  await Promise.all(payments)
  expect(await balances(pool, account)).toEqual([{ currency: 'EUR', available: 300n, pending: 0n }])
  const transfers = await Promise.all(
    Array.from({ length: 30 }, (_, i) =>
      once.run(send, { account, key: `key-of-transfer-${i}`, input: { id: `trf_${i}`, amount: 70 } }),
    ),
  )
  expect(transfers.filter((ended) => ended.outcome === 'executed' && ended.value)).toHaveLength(4)
  expect(await availableOf(pool, account, 'EUR')).toBe(20n)
  expect((await verify(pool)).problems).toEqual([])
})
