import { expect, it } from 'vitest'
import { openTestService } from '../test/service.ts'
import { checkpointer, verify } from './index.ts'

const MANY = `
INSERT INTO payments.ledger_transactions (account, id, kind, source, state, ledger_accounts, currencies, amounts)
SELECT 'acct_one:test', 'txn_' || n, 'capture', 'cap_' || n, 'posted', ARRAY['gateway', 'balance'], ARRAY['EUR', 'EUR'], ARRAY[1, -1]
FROM generate_series($1::int, $2::int) AS n`

it('checkpoints are written when they are worth it, by one of all who want to', async () => {
  const { service } = await openTestService()
  const workers = [checkpointer(service), checkpointer(service), checkpointer(service)]
  const run = async () => {
    const ran = await Promise.all(workers.map((worker) => worker.runOnce()))
    return ran.reduce((sum, { done }) => sum + done, 0)
  }
  await service.pool.query(MANY, [1, 999])
  expect(await run()).toBe(0)
  await service.pool.query(MANY, [1_000, 1_000])
  expect(await run()).toBe(1)
  expect(await run()).toBe(0)
  expect(await verify(service.pool)).toMatchObject({ ok: true, entries: 2_000 })
})
