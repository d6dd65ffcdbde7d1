import assert from 'node:assert/strict'
import {
  type Cases,
  claimOf,
  claimWhenFree,
  FAILURE,
  isLeaseLost,
  LONG_MS,
  newId,
  reply,
  run,
  runWhenFree,
  until,
} from './shared.ts'

export const LEASES: Cases = {
  'gives a record whose lease ran out to the next claim, and turns the late owner away': async ({
    store,
  }) => {
    const id = newId()
    const late = await run(store, claimOf(id, { lease_ms: 1 }))
    const owner = await runWhenFree(store, claimOf(id, { takeover: 'resume' }))
    assert.equal(owner.fence, late.fence + 1)
    await assert.rejects(store.complete(late, reply('late'), LONG_MS), isLeaseLost)
    await assert.rejects(store.release(late, FAILURE, LONG_MS), isLeaseLost)
    await assert.rejects(store.doubt(late, FAILURE), isLeaseLost)
    await assert.rejects(store.extend(late, LONG_MS), isLeaseLost)
    assert.equal((await store.look(id))?.record.state, 'in_progress')
    await store.complete(owner, reply('in time'), LONG_MS)
    const decision = await store.claim(claimOf(id))
    assert.equal(decision.kind === 'replay' && decision.record.reply.body?.toString(), 'in time')
    assert.equal((await store.history(id))[0]?.outcome, 'abandoned')
  },

  'marks a record unknown when its owner vanished and may not be followed': async ({ store }) => {
    const id = newId()
    const vanished = await run(store, claimOf(id, { lease_ms: 1 }))
    const decision = await claimWhenFree(store, claimOf(id, { takeover: 'doubt' }))
    assert.equal(decision.kind, 'vanished')
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'unknown')
    assert.equal(seen?.record.fence, vanished.fence)
    const again = await store.claim(claimOf(id))
    assert.ok(again.kind === 'unknown' && again.retry_after_ms > 0)
    await assert.rejects(store.complete(vanished, reply('late'), LONG_MS), isLeaseLost)
  },

  'keeps a record whose lease was extended': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id, { lease_ms: 5_000 }))
    await store.extend(owned, LONG_MS)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'in_progress' && seen.record.lease_until - seen.now > 30_000)
  },

  'lets an owner finish after its lease as long as nobody took over': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id, { lease_ms: 1 }))
    await until(async () => {
      const seen = await store.look(id)
      return seen?.record.state === 'in_progress' && seen.record.lease_until < seen.now
    })
    await store.complete(owned, reply('{}'), LONG_MS)
    assert.equal((await store.look(id))?.record.state, 'completed')
  },
}
