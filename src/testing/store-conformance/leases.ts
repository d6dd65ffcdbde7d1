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

const KINDS = ['transaction', 'handler', 'handler_rerunnable', 'handler_recoverable'] as const

export const LEASES: Cases = {
  'gives a record whose lease ran out to the next claim, and turns the late owner away': async ({
    store,
  }) => {
    const id = newId()
    const late = await run(store, claimOf(id, { leaseMs: 1, kind: 'handler_rerunnable' }))
    const owner = await runWhenFree(store, claimOf(id, { takeover: 'resume', kind: 'handler_rerunnable' }))
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

  'gives a record whose lease ran out only to a claim of the kind that began it': async ({ store }) => {
    const kinds = [...KINDS, 'operation'] as const
    for (const begun of kinds) {
      for (const next of kinds) {
        const id = newId()
        await run(store, claimOf(id, { leaseMs: 1, kind: begun }))
        const decision = await claimWhenFree(store, claimOf(id, { takeover: 'resume', kind: next }))
        const follows = begun === next && (begun === 'operation' || begun === 'handler_rerunnable')
        assert.equal(decision.kind, follows ? 'run' : 'vanished', `${next} after ${begun}`)
        assert.equal((await store.look(id))?.record.kind, begun)
      }
    }
  },

  'marks a record unknown when its owner vanished and may not be followed': async ({ store }) => {
    const id = newId()
    const vanished = await run(store, claimOf(id, { leaseMs: 1 }))
    const decision = await claimWhenFree(store, claimOf(id, { takeover: 'doubt' }))
    assert.equal(decision.kind, 'vanished')
    const seen = await store.look(id)
    assert.equal(seen?.record.state, 'unknown')
    assert.equal(seen?.record.fence, vanished.fence)
    const again = await store.claim(claimOf(id))
    assert.ok(again.kind === 'unknown' && again.retryAfterMs > 0)
  },

  'gives the owner that vanished its grace before anybody looks': async ({ store }) => {
    const id = newId()
    await run(store, claimOf(id, { leaseMs: 1 }))
    const claim = { ...claimOf(id, { takeover: 'doubt' }), graceMs: LONG_MS }
    const decision = await claimWhenFree(store, claim)
    assert.ok(decision.kind === 'vanished' && !decision.due && decision.retryAfterMs > LONG_MS / 2)
    const again = await store.claim(claim)
    assert.ok(again.kind === 'unknown' && !again.due && again.retryAfterMs > LONG_MS / 2)
    const other = newId()
    await run(store, claimOf(other, { leaseMs: 1 }))
    const late = await claimWhenFree(store, { ...claimOf(other, { takeover: 'doubt' }), graceMs: 0 })
    assert.ok(late.kind === 'vanished' && late.due)
  },

  'takes the late reply of an owner that was given up, and its late proof that nothing happened': async ({
    store,
  }) => {
    const ids = [newId(), newId()]
    const owners = []
    for (const id of ids) {
      owners.push(await run(store, claimOf(id, { leaseMs: 1 })))
      await claimWhenFree(store, claimOf(id, { takeover: 'doubt' }))
    }
    await store.complete(owners[0]!, reply('late'), LONG_MS)
    const decision = await store.claim(claimOf(ids[0]!))
    assert.equal(decision.kind === 'replay' && decision.record.reply.body?.toString(), 'late')
    await store.release(owners[1]!, FAILURE, LONG_MS)
    assert.equal((await store.look(ids[1]!))?.record.state, 'retryable')
  },

  'takes nothing from a stranger with the right fence': async ({ store }) => {
    const id = newId()
    const owner = await run(store, claimOf(id, { leaseMs: 1 }))
    await claimWhenFree(store, claimOf(id, { takeover: 'doubt' }))
    const stranger = { ...owner, attemptId: claimOf(id).claimant.attemptId }
    await assert.rejects(store.complete(stranger, reply('stranger'), LONG_MS), isLeaseLost)
    await assert.rejects(store.release(stranger, FAILURE, LONG_MS), isLeaseLost)
    await assert.rejects(store.extend(stranger, LONG_MS), isLeaseLost)
    assert.equal((await store.look(id))?.record.state, 'unknown')
  },

  'gives an owner that comes back its record, but not by a lease of nothing': async ({ store }) => {
    const id = newId()
    const owner = await run(store, claimOf(id, { leaseMs: 1 }))
    await claimWhenFree(store, claimOf(id, { takeover: 'doubt' }))
    await assert.rejects(store.extend(owner, 0), isLeaseLost)
    await store.extend(owner, LONG_MS)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'in_progress' && seen.record.leaseUntil - seen.now > 30_000)
    assert.equal(seen.record.fence, owner.fence)
    await store.complete(owner, reply('{}'), LONG_MS)
    assert.equal((await store.look(id))?.record.state, 'completed')
  },

  'keeps the kind of protection that a claim names': async ({ store }) => {
    for (const kind of KINDS) {
      const id = newId()
      const claim = claimOf(id)
      await run(store, { ...claim, claimant: { ...claim.claimant, kind } })
      assert.equal((await store.look(id))?.record.kind, kind)
    }
  },

  'keeps a record whose lease was extended': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id, { leaseMs: 5_000 }))
    await store.extend(owned, LONG_MS)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'in_progress' && seen.record.leaseUntil - seen.now > 30_000)
  },

  'lets an owner finish after its lease as long as no other owner took over': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id, { leaseMs: 1 }))
    await until(async () => {
      const seen = await store.look(id)
      return seen?.record.state === 'in_progress' && seen.record.leaseUntil < seen.now
    })
    await store.complete(owned, reply('{}'), LONG_MS)
    assert.equal((await store.look(id))?.record.state, 'completed')
  },
}
