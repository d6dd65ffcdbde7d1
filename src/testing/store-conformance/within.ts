import assert from 'node:assert/strict'
import { type Cases, claimOf, FAILURE, LONG_MS, newId, reply, run } from './shared.ts'

export const WITHIN: Cases = {
  'completes inside a transaction of the caller': async ({ store, begin }) => {
    const claim = claimOf(newId())
    const { tx, commit } = await begin()
    const end = await store.within(tx, claim, LONG_MS, async (_, claimed) => {
      assert.equal(claimed.from, 'none')
      return reply('inside')
    })
    assert.equal(end.end, 'completed')
    await commit()
    const decision = await store.claim(claimOf(claim.id))
    assert.equal(decision.kind === 'replay' && decision.record.reply.body?.toString(), 'inside')
  },

  'leaves nothing when the work throws, and lets the caller go on': async ({ store, begin }) => {
    const claim = claimOf(newId())
    const { tx, commit } = await begin()
    await assert.rejects(
      store.within(tx, claim, LONG_MS, () => Promise.reject(new Error('no'))),
      /no/,
    )
    const other = claimOf(newId())
    assert.equal((await store.within(tx, other, LONG_MS, async () => reply('{}'))).end, 'completed')
    await commit()
    assert.equal(await store.look(claim.id), null)
    assert.equal((await store.look(other.id))?.record.state, 'completed')
  },

  'decides inside a transaction as outside': async ({ store, begin }) => {
    const id = newId()
    await store.complete(await run(store, claimOf(id)), reply('stored'), LONG_MS)
    const { tx, commit } = await begin()
    const replay = await store.within(tx, claimOf(id), LONG_MS, () => Promise.reject(new Error('ran')))
    assert.equal(replay.end === 'decided' && replay.decision.kind, 'replay')
    const reused = await store.within(tx, claimOf(id, { request: 2 }), LONG_MS, () =>
      Promise.reject(new Error('ran')),
    )
    assert.equal(reused.end === 'decided' && reused.decision.kind, 'key_reused')
    await commit()
  },

  'runs a retryable record again inside a transaction': async ({ store, begin }) => {
    const id = newId()
    await store.release(await run(store, claimOf(id)), FAILURE, LONG_MS)
    const { tx, commit } = await begin()
    const states: unknown[] = []
    const end = await store.within(tx, claimOf(id), LONG_MS, async (_, claimed) => {
      states.push(claimed.from)
      return reply('{}')
    })
    assert.equal(end.end, 'completed')
    assert.deepEqual(states, ['retryable'])
    await commit()
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'completed')
    assert.equal(seen?.record.fence, 2)
    assert.equal((await store.history(id)).length, 1)
  },
}
