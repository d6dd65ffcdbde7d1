import { beforeAll, describe, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { storeConformance } from '../../testing/store-conformance/index.ts'
import { postgres } from './index.ts'

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
})

for (const [name, options] of [
  ['postgres', {}],
  ['postgres as behind a pooler', { pooler: 'transaction' }],
] as const) {
  storeConformance({ describe, it }, name, async () => {
    const pool = database.pool({ max: 8 })
    return {
      store: postgres({ pool, ...options }),
      async begin() {
        const client = await pool.connect()
        await client.query('BEGIN')
        const end = (text: string) => async () => {
          await client.query(text)
          client.release()
        }
        return { tx: client, commit: end('COMMIT'), rollback: end('ROLLBACK') }
      },
    }
  })
}
