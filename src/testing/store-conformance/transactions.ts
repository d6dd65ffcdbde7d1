import assert from 'node:assert/strict'
import { attemptOf, type Cases, FAILURE, newId, reply, transact } from './shared.ts'

export const TRANSACTIONS: Cases = {
  'goes from none to completed in one step that no reader sees half done': async ({ store }) => {
    const attempt = attemptOf(newId())
    const end = await transact(store, attempt, async () => {
      assert.equal(await store.look(attempt.id), null)
      return reply('done')
    })
    assert.equal(end.end, 'committed')
    const seen = await store.look(attempt.id)
    assert.equal(seen?.record.state, 'completed')
    assert.equal(seen?.record.fence, 1)
  },

  'conflicts with a record that came first': async ({ store }) => {
    const id = newId()
    await transact(store, attemptOf(id), async () => reply('first'))
    const second = await transact(store, attemptOf(id), async () => reply('second'))
    assert.deepEqual(second, { end: 'conflict' })
    const seen = await store.look(id)
    assert.equal(seen?.record.state === 'completed' && seen.record.reply.body?.toString(), 'first')
  },

  'leaves nothing of work that throws, and tells the error': async ({ store }) => {
    const attempt = attemptOf(newId())
    const error = new Error('no')
    const end = await transact(store, attempt, () => Promise.reject(error))
    assert.deepEqual(end, { end: 'failed', error })
    assert.equal(await store.look(attempt.id), null)
  },

  'leaves a retryable record only where there is none': async ({ store }) => {
    const attempt = attemptOf(newId())
    assert.equal(await store.leaveRetryable(attempt, FAILURE), true)
    assert.equal((await store.look(attempt.id))?.record.state, 'retryable')
    assert.equal(await store.leaveRetryable(attemptOf(attempt.id), FAILURE), false)
  },

  'completes a retryable record with a higher fence, once': async ({ store }) => {
    const id = newId()
    await store.leaveRetryable(attemptOf(id), FAILURE)
    const previous = (await store.look(id))!.record
    const again = { ...attemptOf(id), previous }
    assert.equal((await transact(store, again, async () => reply('ok'))).end, 'committed')
    assert.equal((await store.look(id))?.record.fence, 2)
    assert.equal((await store.history(id)).length, 1)
    const late = { ...attemptOf(id), previous }
    assert.deepEqual(await transact(store, late, async () => reply('late')), { end: 'conflict' })
    assert.equal(await store.leaveRetryable({ ...attemptOf(id), previous }, FAILURE), false)
  },

  'tells a committed attempt from one that was rolled back': async ({ store }) => {
    const committed = attemptOf(newId())
    await transact(store, committed, async () => reply('ok'))
    assert.equal(await store.settle(committed), 'committed')
    assert.equal(await store.settle(attemptOf(committed.id)), 'rolled_back')
    const never = attemptOf(newId())
    assert.equal(await store.settle(never), 'rolled_back')
    assert.equal(await store.settle(never), 'rolled_back')
    assert.deepEqual(await transact(store, never, async () => reply('late')), { end: 'conflict' })
  },

  'settles an attempt that set out from a retryable record': async ({ store }) => {
    const id = newId()
    await store.leaveRetryable(attemptOf(id), FAILURE)
    const previous = (await store.look(id))!.record
    const committed = { ...attemptOf(id), previous }
    const never = { ...attemptOf(id), previous }
    await transact(store, committed, async () => reply('ok'))
    assert.equal(await store.settle(committed), 'committed')
    assert.equal(await store.settle(never), 'rolled_back')
  },

  'says busy to a second exclusive transaction without running it': async ({ store }) => {
    const id = newId()
    let ran = 0
    const exclusive = () => ({ ...attemptOf(id), exclusive: true })
    const first = await transact(store, exclusive(), async () => {
      const second = await transact(store, exclusive(), async () => {
        ran += 1
        return reply('second')
      })
      assert.deepEqual(second, { end: 'busy' })
      return reply('first')
    })
    assert.equal(first.end, 'committed')
    assert.equal(ran, 0)
  },
}
