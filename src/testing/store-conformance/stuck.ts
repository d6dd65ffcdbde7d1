import assert from 'node:assert/strict'
import type { Stuck } from '../../record/index.ts'
import { type Cases, claimOf, claimWhenFree, FAILURE, LONG_MS, newId, reply, run, until } from './shared.ts'

/** What came to the counts meanwhile: the store may hold records of other tests. */
function added(before: Stuck, after: Stuck): Record<keyof Stuck, number> {
  return {
    in_progress: after.in_progress.count - before.in_progress.count,
    unknown: after.unknown.count - before.unknown.count,
    parked: after.parked.count - before.parked.count,
  }
}

export const STUCK: Cases = {
  'counts unfinished records of all accounts by state, and no finished ones': async ({ store }) => {
    const before = await store.stuck(0)
    const [running, doubted, completed, released] = await Promise.all(
      ['acct_1', 'acct_2', 'acct_3', 'acct_4'].map((account) => run(store, claimOf({ ...newId(), account }))),
    )
    assert.deepEqual(added(before, await store.stuck(0)), { in_progress: 4, unknown: 0, parked: 0 })
    await store.doubt(doubted!, FAILURE)
    await store.complete(completed!, reply('{}'), LONG_MS)
    await store.release(released!, FAILURE, LONG_MS)
    assert.deepEqual(added(before, await store.stuck(0)), { in_progress: 1, unknown: 1, parked: 0 })
    await store.complete(running!, reply('{}'), LONG_MS)
    assert.deepEqual(added(before, await store.stuck(0)), { in_progress: 0, unknown: 1, parked: 0 })
  },

  'counts a record from the age that was asked for, by its own clock': async ({ store }) => {
    const id = newId()
    const owned = await run(store, claimOf(id))
    const before = await store.stuck(LONG_MS)
    let ageMs = 0
    await until(async () => {
      const seen = await store.look(id)
      ageMs = seen!.now - seen!.record.attemptedAt
      return ageMs >= 20
    })
    const now = await store.stuck(20)
    assert.ok(now.in_progress.count >= 1)
    assert.ok(now.in_progress.oldestAgeMs >= ageMs)
    assert.deepEqual(added(before, await store.stuck(LONG_MS)), { in_progress: 0, unknown: 0, parked: 0 })
    await store.complete(owned, reply('{}'), LONG_MS)
  },

  'tells what a claim took over': async ({ store }) => {
    const id = newId()
    const first = await store.claim(claimOf(id))
    assert.ok(first.kind === 'run' && first.from === 'none')
    await store.release({ id, fence: 1, attemptId: first.record.attemptId }, FAILURE, LONG_MS)
    const again = await store.claim(claimOf(id, { leaseMs: 1, kind: 'handler_rerunnable' }))
    assert.ok(again.kind === 'run' && again.from === 'retryable')
    const decision = await claimWhenFree(store, claimOf(id, { kind: 'handler_rerunnable' }))
    assert.ok(decision.kind === 'run' && decision.from === 'in_progress')
  },
}
