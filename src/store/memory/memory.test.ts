import { describe, expect, it } from 'vitest'
import { storeConformance } from '../../testing/store-conformance/index.ts'
import type { Queryable } from '../contract.ts'
import { memory } from './index.ts'

const tx: Queryable = { query: async () => ({ rows: [] }) }
const begin = async () => ({ tx, commit: async () => {}, rollback: async () => {} })

storeConformance({ describe, it }, 'memory', async () => ({ store: memory(), begin }))

describe('memory', () => {
  it('says that it has no database when work asks for one', async () => {
    const store = memory()
    const fingerprint = { keyId: 'k', digest: Buffer.alloc(32) }
    const claimant = { kind: 'transaction', attemptId: 'a', owner: 'o', fingerprint, trace: null } as const
    const id = { account: 'a', operation: 'o', key: 'k' }
    const attempt = {
      id,
      claimant,
      previous: null,
      retentionMs: 1,
      isolation: null,
      exclusive: false,
      strictTx: false,
      timeMaxMs: 30_000,
    }
    const end = await store.transact(
      attempt,
      async (tx) => {
        await tx.query('SELECT 1')
        return { status: 200, headers: [], body: null, schema: 1, sealedBy: null }
      },
      () => {},
    )
    expect(end).toMatchObject({ end: 'failed', error: { code: 'memory_has_no_database' } })
  })
})
