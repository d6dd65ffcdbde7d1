import { beforeAll, describe, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { postgresUnderTest } from '../../../test/setup/under-test.ts'
import { storeConformance } from '../../testing/store-conformance/index.ts'

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
})

for (const [name, options] of [
  ['postgres', {}],
  ['postgres as behind a pooler', { pooler: 'transaction' }],
] as const) {
  storeConformance({ describe, it }, name, async () => postgresUnderTest(database.pool({ max: 8 }), options))
}
