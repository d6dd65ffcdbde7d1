import { OnlyonceError } from 'onlyonce'
import { expect, it } from 'vitest'
import { ensureDemoAccount } from './accounts/index.ts'
import { openFolder } from './data-folder.ts'
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

it.each(['/proc/x', '/etc/hostname', '/etc/hostname/below'])(
  'a folder that cannot be made is told in a line, at once: %s',
  async (folder) => {
    const error = await openFolder(folder).catch((thrown: unknown) => thrown)
    expect(explain(error)).toMatch(/^DATA_FOLDER cannot be used: \/(?:proc|etc)[^\n]*\.$/)
  },
)

it('what the library refuses at a start is told in a line, with its code', () => {
  const error = new OnlyonceError('key_ring_incomplete', { detail: 'Missing: the key "a".' })
  expect(explain(error)).toMatch(/^[^\n]*Missing: the key "a"\. \(key_ring_incomplete\)$/)
})

it('what is not known is told as it is', () => {
  const error = new Error('anything else')
  expect(explain(error)).toBe(error)
})
