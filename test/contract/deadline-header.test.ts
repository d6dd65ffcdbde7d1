import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const CALL = { account: 'acct_1', operation: 'orders.create' }

/** A route whose handler answers only when the deadline that the client gave is past. */
function openSlowRoute(deadline: number) {
  const once = shop.open()
  const policy = { account: () => CALL.account, operation: CALL.operation, deadlineHeader: 'X-Deadline' }
  let runs = 0
  let aborted = false
  const route = idempotent(once, policy, async (_, { idempotency: context }) => {
    runs += 1
    context!.signal.addEventListener('abort', () => {
      aborted = true
    })
    while (Date.now() <= deadline + 300) await new Promise(setImmediate)
    return Response.json({ run: runs }, { status: 201 })
  })
  const send = (key: string) => {
    const headers = { 'Idempotency-Key': key, 'X-Deadline': new Date(deadline).toISOString() }
    return route(new Request('http://localhost/orders', { method: 'POST', headers }))
  }
  return { once, send, runs: () => runs, aborted: () => aborted }
}

describe('a deadline of the client', () => {
  test('bounds the start alone: a reply after it is stored and sent', async () => {
    const warm = shop.open()
    await warm.start()
    const deadline = Date.now() + 1_000
    const { once, send, runs, aborted } = openSlowRoute(deadline)
    const key = randomUUID()
    const first = await send(key)
    expect([first.status, await first.json()]).toEqual([201, { run: 1 }])
    expect(aborted()).toBe(false)
    expect((await once.explain({ ...CALL, key })).state).toBe('completed')
    // A retry is late by its own deadline. It starts nothing, and is told what was done.
    const again = await send(key)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    expect((await send(randomUUID())).status).toBe(504)
    expect(runs()).toBe(1)
  })
})
