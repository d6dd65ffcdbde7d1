import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Reply } from '../../record/index.ts'
import type { Owned } from '../../store/contract.ts'
import {
  type Cases,
  claimOf,
  FAILURE,
  isLeaseLost,
  LONG_MS,
  newId,
  reply,
  run,
  runWhenFree,
} from './shared.ts'

export const ENDS: Cases = {
  'replays a completed reply byte for byte': async ({ store }) => {
    const bodies = [Buffer.from('{"a":1}'), Buffer.alloc(0), Buffer.from([0, 1, 92, 120, 255, 0]), null]
    for (const body of bodies) {
      const id = newId()
      const owned = await run(store, claimOf(id))
      const given: Reply = {
        status: 204,
        headers: [
          ['b', '2'],
          ['a', 'ü"\\'],
        ],
        body,
        schema: 3,
        sealedBy: 'k7',
      }
      await store.complete(owned, given, LONG_MS)
      const decision = await store.claim(claimOf(id))
      assert.equal(decision.kind, 'replay')
      assert.deepEqual(decision.kind === 'replay' && decision.record.reply, given)
    }
  },

  'counts retention from completion': async ({ store }) => {
    const id = newId()
    await store.complete(await run(store, claimOf(id)), reply('{}'), LONG_MS)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'completed')
    assert.ok(Math.abs(seen.record.expiresAt - seen.record.changedAt - LONG_MS) <= 1)
  },

  'runs again after a release, with a higher fence and a history': async ({ store }) => {
    const id = newId()
    const first = await run(store, claimOf(id))
    await store.release(first, FAILURE, LONG_MS)
    const second = await run(store, claimOf(id))
    assert.equal(second.fence, 2)
    const [past, ...rest] = await store.history(id)
    assert.deepEqual(rest, [])
    assert.equal(past?.attemptId, first.attemptId)
    assert.equal(past?.outcome, 'retryable')
    assert.deepEqual(past?.failure, FAILURE)
    assert.ok(past.startedAt <= past.endedAt!)
  },

  'keeps that an earlier attempt may have had effects': async ({ store }) => {
    const id = newId()
    await store.release(await run(store, claimOf(id)), FAILURE, LONG_MS, true)
    const decision = await store.claim(claimOf(id))
    assert.ok(decision.kind === 'run' && decision.effectsPossible)
    const { fence, attemptId } = decision.record
    assert.equal(decision.record.kind, 'handler')
    await store.release({ id, fence, attemptId }, FAILURE, LONG_MS)
    const after = await store.claim(claimOf(id))
    assert.ok(after.kind === 'run' && !after.effectsPossible)
  },

  'lets one of fifty simultaneous retries run': async ({ store }) => {
    const id = newId()
    await store.release(await run(store, claimOf(id)), FAILURE, LONG_MS)
    const decisions = await Promise.all(Array.from({ length: 50 }, () => store.claim(claimOf(id))))
    assert.equal(decisions.filter((decision) => decision.kind === 'run').length, 1)
    assert.equal((await store.look(id))?.record.fence, 2)
  },

  'forgets what an attempt has made itself, and another request may have the key': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id))
    assert.equal(await store.forget(owned), true)
    assert.equal(await store.look(id), null)
    // The answer may have been lost.
    assert.equal(await store.forget(owned), true)
    const other = await run(store, claimOf(id, { request: 2 }))
    assert.equal(other.fence, 1)
    assert.deepEqual(await store.history(id), [])
    // Asked once more, when another has the key by now: nothing of the other's is removed.
    assert.equal(await store.forget(owned), true)
    assert.equal((await store.look(id))?.record.attemptId, other.attemptId)
  },

  'forgets nothing that an earlier attempt has left': async ({ store }) => {
    const id = newId()
    await store.release(await run(store, claimOf(id)), FAILURE, LONG_MS)
    const second = await run(store, claimOf(id))
    assert.equal(await store.forget(second), false)
    assert.equal((await store.look(id))?.record.attemptId, second.attemptId)
    assert.equal((await store.history(id)).length, 1)
  },

  'forgets nothing that has another owner, or an end': async ({ store }) => {
    const id = newId()
    const first = await run(store, claimOf(id, { leaseMs: 1, kind: 'handler_rerunnable' }))
    const stranger = { ...first, attemptId: randomUUID() }
    assert.equal(await store.forget(stranger), true)
    assert.equal((await store.look(id))?.record.attemptId, first.attemptId)
    const second = await runWhenFree(store, claimOf(id, { kind: 'handler_rerunnable' }))
    assert.equal(await store.forget(first), false)
    assert.equal((await store.look(id))?.record.attemptId, second.attemptId)
    const ends: ((owned: Owned) => Promise<void>)[] = [
      (owned) => store.complete(owned, reply('{}'), LONG_MS),
      (owned) => store.release(owned, FAILURE, LONG_MS),
      (owned) => store.doubt(owned, FAILURE),
    ]
    for (const end of ends) {
      const owned = await run(store, claimOf(newId()))
      await end(owned)
      assert.equal(await store.forget(owned), false)
      assert.notEqual(await store.look(owned.id), null)
    }
  },

  'never runs what is unknown': async ({ store }) => {
    const id = newId()
    await store.doubt(await run(store, claimOf(id)), FAILURE)
    for (const takeover of ['resume', 'doubt'] as const) {
      assert.equal((await store.claim(claimOf(id, { takeover }))).kind, 'unknown')
    }
  },

  'accepts the same end twice from the same attempt': async ({ store }) => {
    const ends: ((owned: Owned) => Promise<void>)[] = [
      (owned) => store.complete(owned, reply('{}'), LONG_MS),
      (owned) => store.release(owned, FAILURE, LONG_MS),
      (owned) => store.doubt(owned, FAILURE),
    ]
    for (const end of ends) {
      const owned = await run(store, claimOf(newId()))
      await end(owned)
      await end(owned)
    }
  },

  'lets an ended attempt change nothing more': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id))
    await store.complete(owned, reply('first'), LONG_MS)
    await assert.rejects(store.doubt(owned, FAILURE), isLeaseLost)
    await assert.rejects(store.release(owned, FAILURE, LONG_MS), isLeaseLost)
    await assert.rejects(store.extend(owned, LONG_MS), isLeaseLost)
    const seen = await store.look(id)
    assert.ok(seen?.record.state === 'completed')
    assert.equal(seen.record.reply.body?.toString(), 'first')
  },
}
