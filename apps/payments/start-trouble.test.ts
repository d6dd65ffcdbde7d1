import { expect, it } from 'vitest'
import { ensureDemoAccount } from './accounts/index.ts'
import { explain } from './start-trouble.ts'
import { openLedger } from './test/ledger.ts'

it('a database that only reads is told in a line, without what the driver says', async () => {
  const pool = await openLedger()
  const client = await pool.connect()
  await client.query('SET default_transaction_read_only = on')
  const error = await ensureDemoAccount(client).catch((thrown: unknown) => thrown)
  client.release(true)
  expect(explain(error)).toMatch(/^The database can only be read.*DEMO_ACCOUNT/)
})

it('what is not known is told as it is', () => {
  const error = new Error('anything else')
  expect(explain(error)).toBe(error)
})
