import { beforeAll, describe, expect, it } from 'vitest'
import { type FreshDatabase, freshDatabase } from '../../test/setup/database.ts'
import { postgresUnderTest } from '../../test/setup/under-test.ts'
import { keyRing } from '../core/ring.ts'
import type { RecordId, Reply } from '../record/index.ts'
import { Seal } from '../seal/index.ts'
import { KEYS, storeConformance } from '../testing/store-conformance/index.ts'
import { attemptOf, claimOf, LONG_MS, newId, run } from '../testing/store-conformance/shared.ts'
import type { Queryable, Store } from './contract.ts'
import { memory } from './memory/index.ts'
import { sealed } from './sealed.ts'

const [keyId] = KEYS.reply
const seal = new Seal(keyRing({ current: keyId, keys: { [keyId]: 'k'.repeat(32) } }, 'reply'))
const blind = new Seal(null)
const tx: Queryable = { query: async () => ({ rows: [] }) }
const begin = async () => ({ tx, commit: async () => {}, rollback: async () => {} })
const REPLY: Reply = {
  status: 201,
  headers: [['location', '/ü/1']],
  body: Buffer.from('{"id":1}'),
  schema: 1,
  sealedBy: null,
}

let database: FreshDatabase
beforeAll(async () => {
  database = await freshDatabase()
})

storeConformance({ describe, it }, 'sealed memory', async () => ({ store: sealed(memory(), seal), begin }))
storeConformance({ describe, it }, 'sealed postgres', async () => {
  const underTest = postgresUnderTest(database.pool({ max: 8 }))
  return { ...underTest, store: sealed(underTest.store, seal) }
})

/** Every way in which a reply gets into a store. */
const WAYS: Record<string, (store: Store<Queryable>, id: RecordId) => Promise<unknown>> = {
  complete: async (store, id) => store.complete(await run(store, claimOf(id)), REPLY, LONG_MS),
  transact: (store, id) =>
    store.transact(
      attemptOf(id),
      async () => REPLY,
      () => {},
    ),
  within: (store, id) => store.within(tx, claimOf(id), LONG_MS, async () => REPLY),
}

describe.each(Object.entries(WAYS))('a reply that comes in by %s', (_, put) => {
  it('is sealed inside and plain outside, by every way out', async () => {
    const inner = memory()
    const store = sealed(inner, seal)
    const id = newId()
    await put(store, id)
    const inside = (await inner.look(id))?.record
    expect(inside).toMatchObject({ state: 'completed', reply: { headers: [], sealedBy: keyId } })
    expect(JSON.stringify(inside)).not.toMatch(/location/)
    expect(await store.look(id)).toMatchObject({ record: { reply: REPLY } })
    expect(await store.claim(claimOf(id))).toMatchObject({ kind: 'replay', record: { reply: REPLY } })
    expect(await store.within(tx, claimOf(id), LONG_MS, async () => REPLY)).toMatchObject({
      end: 'decided',
      decision: { kind: 'replay', record: { reply: REPLY } },
    })
  })

  it('that cannot be opened hides neither its state nor a reused key', async () => {
    const inner = memory()
    const id = newId()
    await put(sealed(inner, seal), id)
    const store = sealed(inner, blind)
    const seen = await store.look(id)
    expect(seen?.record).toHaveProperty('state', 'completed')
    expect(() => seen?.record.state === 'completed' && seen.record.reply).toThrow(
      expect.objectContaining({ code: 'seal_key_unknown' }),
    )
    expect(await store.claim(claimOf(id, { request: 2 }))).toEqual({ kind: 'key_reused' })
    const decision = await store.claim(claimOf(id))
    expect(() => decision.kind === 'replay' && decision.record.reply).toThrow(
      expect.objectContaining({ code: 'seal_key_unknown' }),
    )
  })
})

describe('the end of a transaction', () => {
  it('gives back what the work gave, and not what was stored', async () => {
    const end = await sealed(memory(), seal).transact(
      attemptOf(newId()),
      async () => REPLY,
      () => {},
    )
    expect(end).toEqual({ end: 'committed', reply: REPLY })
    const inside = await sealed(memory(), seal).within(tx, claimOf(newId()), LONG_MS, async () => REPLY)
    expect(inside).toEqual({ end: 'completed', reply: REPLY })
  })
})

it('seals may stand one behind the other', async () => {
  const store = sealed(sealed(memory(), seal), seal)
  const id = newId()
  await WAYS.complete!(store, id)
  expect(await store.look(id)).toMatchObject({ record: { reply: REPLY } })
})

it('without keys, what is plain stays so', async () => {
  const inner = memory()
  const store = sealed(inner, blind)
  const id = newId()
  await WAYS.complete!(store, id)
  expect(await inner.look(id)).toMatchObject({ record: { reply: REPLY } })
  expect(await store.look(id)).toMatchObject({ record: { reply: REPLY } })
})
