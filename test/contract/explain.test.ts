import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/entries/limits.ts'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

async function readClock(): Promise<number> {
  const { rows } = await shop.observer.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now')
  return Number(rows[0].now)
}

function fail(message: string, code?: string) {
  return async () => {
    throw Object.assign(new Error(message), code === undefined ? {} : { code })
  }
}

describe.each(POOLERS)('explain, with pooler %s', (pooler) => {
  test('a key that was never used', async () => {
    const once = shop.open({ store: { pooler } })
    expect(await once.explain(makeCall())).toEqual({
      state: 'none',
      why: expect.stringMatching(/\.$/),
      next: expect.stringMatching(/\.$/),
      attempts: [],
      replyStatus: null,
      settledBy: null,
      inDoubt: null,
      elsewhere: [],
      createdAt: null,
      changedAt: null,
      leaseUntil: null,
      lookAt: null,
      expiresAt: null,
    })
  })

  test('a completed key', async () => {
    const once = shop.open({ store: { pooler }, retentionMs: 3_600_000 })
    const call = makeCall()
    const before = await readClock()
    await once.transaction(call, (tx) => leaveEffect(tx, call.key))
    const after = await readClock()
    const told = await once.explain(call)
    expect(told.state).toBe('completed')
    expect(told.attempts).toHaveLength(1)
    const [attempt] = told.attempts
    expect(attempt).toMatchObject({ fence: 1, outcome: 'completed', failure: null })
    expect(attempt?.owner).toContain(String(process.pid))
    for (const time of [told.createdAt, told.changedAt, attempt?.startedAt, attempt?.endedAt]) {
      expect(time).toBeGreaterThanOrEqual(Math.floor(before))
      expect(time).toBeLessThanOrEqual(Math.ceil(after))
    }
    expect(told.leaseUntil).toBeNull()
    expect(told.expiresAt! - told.changedAt!).toBe(3_600_000)
  })

  test('a retryable key, with every failure in its history', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await catchError(once.transaction(call, fail('first failure', 'funds')))
    await catchError(once.transaction(call, fail('second failure')))
    const told = await once.explain(call)
    expect(told.state).toBe('retryable')
    expect(told.why).toContain('second failure')
    expect(told.attempts.map(({ outcome }) => outcome)).toEqual(['retryable', 'retryable'])
    expect(told.attempts.map(({ fence }) => fence)).toEqual([1, 2])
    expect(told.attempts.map(({ failure }) => failure?.message)).toEqual(['first failure', 'second failure'])
    expect(new Set(told.attempts.map(({ attemptId }) => attemptId)).size).toBe(2)

    await once.transaction(call, async () => 1)
    const finished = await once.explain(call)
    expect(finished.state).toBe('completed')
    expect(finished.attempts.map(({ outcome }) => outcome)).toEqual(['retryable', 'retryable', 'completed'])
    expect(finished.attempts.map(({ fence }) => fence)).toEqual([1, 2, 3])
    expect(finished.attempts.map(({ failure }) => failure?.message)).toEqual([
      'first failure',
      'second failure',
      undefined,
    ])
    expect(finished.createdAt).toBe(told.createdAt)
  })

  test('replays and refusals are no attempts', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await once.transaction(call, async () => 1)
    await once.transaction(call, async () => 1)
    await once.transaction({ ...call, input: 0 }, async () => 1)
    expect((await once.explain(call)).attempts).toHaveLength(1)
  })

  test('the history is bounded; the newest attempts are kept', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const failures = LIMITS.historyMax + 5
    for (let turn = 1; turn <= failures; turn++)
      await catchError(once.transaction(call, fail(`turn ${turn}`)))
    const { attempts } = await once.explain(call)
    expect(attempts.at(-1)?.failure?.message).toBe(`turn ${failures}`)
    expect(attempts.length).toBeGreaterThanOrEqual(LIMITS.historyMax)
    expect(attempts.length).toBeLessThanOrEqual(LIMITS.historyMax + 1)
  })

  test('neither input nor reply is told', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall({ input: { pan: 'confidential-input' } })
    await once.transaction(call, async () => 'confidential-reply')
    expect(JSON.stringify(await once.explain(call))).not.toContain('confidential')
  })

  test('what is not committed is not told', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    const client = await beginCaller(shop)
    await once.within(client, call, async () => 1)
    expect((await once.explain(call)).state).toBe('none')
    await client.query('COMMIT')
    expect((await once.explain(call)).state).toBe('completed')
  })
})
