import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Cases, claimOf, FAILURE, LONG_MS, newId, reply, run } from './shared.ts'

export const CLAIMS: Cases = {
  'knows nothing of a key that was never used': async ({ store }) => {
    assert.equal(await store.look(newId()), null)
    assert.deepEqual(await store.history(newId()), [])
  },

  'lets the first claim run and makes all others wait': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id))
    assert.equal(owned.fence, 1)
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'in_progress')
    assert.equal(seen?.record.attemptId, owned.attemptId)
    const second = await store.claim(claimOf(id))
    assert.equal(second.kind, 'in_progress')
    assert.ok(second.kind === 'in_progress' && second.retryAfterMs > 0 && second.retryAfterMs <= LONG_MS)
  },

  'gives one of fifty simultaneous claims the right to run': async ({ store }) => {
    const id = newId()
    const decisions = await Promise.all(Array.from({ length: 50 }, () => store.claim(claimOf(id))))
    const kinds = decisions.map((decision) => decision.kind)
    assert.equal(kinds.filter((kind) => kind === 'run').length, 1)
    assert.equal(kinds.filter((kind) => kind === 'in_progress').length, 49)
  },

  'tells the same attempt again that it may run, because the first answer may have been lost': async ({
    store,
  }) => {
    const claim = claimOf(newId())
    const first = await run(store, claim)
    const again = await run(store, claim)
    assert.deepEqual(again, first)
  },

  'refuses another request under the same key in every state': async ({ store }) => {
    for (const end of ['in_progress', 'completed', 'retryable', 'unknown'] as const) {
      const id = newId()
      const owned = await run(store, claimOf(id, { request: 1 }))
      if (end === 'completed') await store.complete(owned, reply('{}'), LONG_MS)
      if (end === 'retryable') await store.release(owned, FAILURE, LONG_MS)
      if (end === 'unknown') await store.doubt(owned, FAILURE)
      assert.equal((await store.claim(claimOf(id, { request: 2 }))).kind, 'key_reused', end)
    }
  },

  'keeps accounts and operations apart': async ({ store }) => {
    const id = newId()
    await run(store, claimOf(id))
    assert.equal((await run(store, claimOf({ ...id, account: `${id.account}x` }))).fence, 1)
    assert.equal((await run(store, claimOf({ ...id, operation: `${id.operation}x` }))).fence, 1)
    assert.equal(await store.look({ ...id, account: 'another account' }), null)
  },

  'takes any text as account, operation and key': async ({ store }) => {
    const odd = `o'd"d\\ {},;$1 ${'\u{1F600}'} %s \n`
    const id = { account: odd, operation: `${odd}x`, key: `${odd}${randomUUID()}` }
    await run(store, claimOf(id))
    assert.equal((await store.look(id))?.record.state, 'in_progress')
    assert.equal(await store.look({ ...id, key: `${id.key} ` }), null)
  },
}
