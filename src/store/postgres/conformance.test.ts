import { beforeAll, describe, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { POOLERS } from '../../../test/setup/pooler.ts'
import { postgresUnderTest } from '../../../test/setup/under-test.ts'
import { storeConformance } from '../../testing/store-conformance/index.ts'

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
})

for (const pooler of POOLERS) {
  storeConformance({ describe, it }, `postgres with pooler ${pooler}`, async () =>
    postgresUnderTest(database.pool({ max: 8 }), { pooler }),
  )
}
