import assert from 'node:assert/strict'
import type { Reaped, ReapRequest, Store } from '../../store/contract.ts'
import { type Cases, claimOf, FAILURE, LONG_MS, newId, reply, run, until } from './shared.ts'

type AnyStore = Store<{ query(text: string): Promise<{ rows: unknown[] }> }>

const ALL = { mode: 'delete', batchMax: 100, keptMinMs: 0 } as const satisfies ReapRequest

/** Until nothing is left that could go; the store may hold records of other tests. */
async function reapAll(store: AnyStore, request: ReapRequest = ALL): Promise<void> {
  let reaped: Reaped
  do reaped = await store.reap(request)
  while (reaped.more)
}

/** A finished record whose retention is over by the store's own clock. */
async function finished(store: AnyStore, end: 'completed' | 'retryable') {
  const id = newId()
  const owned = await run(store as never, claimOf(id))
  if (end === 'completed') await store.complete(owned, reply('{}'), 1)
  else await store.release(owned, FAILURE, 1)
  await until(async () => {
    const seen = await store.look(id)
    return seen !== null && 'expiresAt' in seen.record && seen.record.expiresAt < seen.now
  })
  return id
}

export const REAPING: Cases = {
  'removes finished records past their retention, and their history': async ({ store }) => {
    const completed = await finished(store, 'completed')
    const retryable = await finished(store, 'retryable')
    const again = await run(store, claimOf(retryable))
    assert.equal((await store.history(retryable)).length, 1)
    await store.complete(again, reply('{}'), 1)
    await until(async () => {
      await reapAll(store)
      return (await store.look(retryable)) === null
    })
    assert.equal(await store.look(completed), null)
    assert.deepEqual(await store.history(retryable), [])
  },

  'never removes what is not finished, however old, nor what is still kept': async ({ store }) => {
    const running = await run(store, claimOf(newId(), { leaseMs: 1 }))
    const doubted = await run(store, claimOf(newId()))
    await store.doubt(doubted, FAILURE)
    const kept = await run(store, claimOf(newId()))
    await store.complete(kept, reply('{}'), LONG_MS)
    await finished(store, 'completed')
    for (const mode of ['delete', 'expire'] as const) await reapAll(store, { ...ALL, mode })
    const states = await Promise.all(
      [running, doubted, kept].map(async ({ id }) => (await store.look(id))?.record.state),
    )
    assert.deepEqual(states, ['in_progress', 'unknown', 'completed'])
  },

  'keeps what has changed a moment ago, with any retention': async ({ store }) => {
    const ids = [await finished(store, 'completed'), await finished(store, 'retryable')]
    await reapAll(store, { ...ALL, keptMinMs: LONG_MS })
    const states = await Promise.all(ids.map(async (id) => (await store.look(id))?.record.state))
    assert.deepEqual(states, ['completed', 'retryable'])
  },

  'may keep the row and clear what it says; the key is then as new, and its fence goes on': async ({
    store,
  }) => {
    const ids = [await finished(store, 'completed'), await finished(store, 'retryable')]
    await reapAll(store, { ...ALL, mode: 'expire' })
    for (const id of ids) {
      const seen = await store.look(id)
      assert.equal(seen?.record.state, 'expired')
      assert.ok(!('reply' in seen.record) && !('failure' in seen.record))
      assert.equal((await run(store, claimOf(id, { request: 2 }))).fence, 2)
    }
  },

  'takes no more than a batch, and says that more are there': async ({ store }) => {
    await reapAll(store)
    const ids = [await finished(store, 'completed'), await finished(store, 'retryable')]
    assert.deepEqual(await store.reap({ ...ALL, batchMax: 1 }), { count: 1, more: true })
    const left = await Promise.all(ids.map((id) => store.look(id)))
    assert.equal(left.filter((seen) => seen !== null).length, 1)
    await reapAll(store)
    assert.deepEqual(await store.reap(ALL), { count: 0, more: false })
  },
}
