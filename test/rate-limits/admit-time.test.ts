import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import type { Admission, RoutePolicy } from '../../src/http/index.ts'
import { makeGate, openShop, type Shop } from '../contract/shop.ts'

const ADMITTED: Admission = { admit: true }

async function openRoute(shop: Shop, policy: Omit<RoutePolicy, 'operation' | 'input'>, once = shop.open()) {
  let runs = 0
  const route = idempotent(
    once,
    { account: () => 'acct_1:test', operation: 'payments.create', ...policy },
    async () => Response.json({ run: ++runs }, { status: 201 }),
  )
  const send = (headers: Record<string, string> = {}, body: ReadableStream | null = null) => {
    const key = { 'Idempotency-Key': randomUUID(), ...headers }
    const init = { method: 'POST', headers: key, body, duplex: 'half' } as RequestInit
    return route(new Request('http://localhost/v1/payments', init))
  }
  const records = async () => (await shop.observer.query('SELECT FROM onlyonce.records')).rows.length
  return { send, records, runs: () => runs }
}

it('a request whose deadline passes while it is asked about does not begin', async () => {
  const deadline = performance.timeOrigin + performance.now() + 300
  const admit = async () => {
    while (performance.timeOrigin + performance.now() < deadline + 20) await new Promise(setImmediate)
    return ADMITTED
  }
  for (const protect of ['handler', 'transaction'] as const) {
    const shop = await openShop()
    const route = await openRoute(shop, { protect, deadlineHeader: 'X-Deadline', admit })
    const late = await route.send({ 'X-Deadline': new Date(deadline).toISOString() })
    expect(late.status).toBe(504)
    expect(await late.json()).toMatchObject({ code: 'deadline_exceeded', retryable: true })
    expect([route.runs(), await route.records()]).toEqual([0, 0])
    // Without a deadline of its own it takes the time that it takes.
    expect((await route.send()).status).toBe(201)
  }
})

it('who waits for another waits no longer than until its own deadline', async () => {
  const shop = await openShop()
  const gate = makeGate()
  const once = shop.open()
  const [key, account] = [randomUUID(), () => 'acct_1:test']
  const policy = { account, operation: 'a', deadlineHeader: 'X-Deadline', onConcurrent: { waitMs: 20_000 } }
  const route = idempotent(once, policy, async () => {
    await gate.pass()
    return new Response(null, { status: 201 })
  })
  const send = (headers: Record<string, string> = {}) =>
    route(
      new Request('http://localhost/', { method: 'POST', headers: { 'Idempotency-Key': key, ...headers } }),
    )
  const first = send()
  await gate.reached
  const began = performance.now()
  const at = performance.timeOrigin + began + 300
  const second = await send({ 'X-Deadline': new Date(at).toISOString() })
  expect(second.status).toBe(409)
  expect(performance.now() - began).toBeLessThan(10_000)
  gate.open()
  expect((await first).status).toBe(201)
})

it('a question that is never answered is given up, and what it says later is not heard', async () => {
  const shop = await openShop()
  let fail: (error: Error) => void = () => {}
  const admit = () =>
    new Promise<Admission>((_, reject) => {
      fail = reject
    })
  const route = await openRoute(shop, { deadlineMs: 100, admit })
  const late = await route.send()
  expect(late.status).toBe(504)
  expect(await late.json()).toMatchObject({ code: 'deadline_exceeded' })
  expect([route.runs(), await route.records()]).toEqual([0, 0])
  fail(new Error('heard by nobody'))
})

it.each(['asked about', 'read'])('what is still being %s when the end begins does not run', async (what) => {
  const shop = await openShop()
  const once = shop.open()
  const [gate, work] = [makeGate(), makeGate()]
  const admit = async () => {
    await gate.pass()
    return ADMITTED
  }
  const body = new ReadableStream({
    async pull(stream) {
      if (what === 'read') await gate.pass()
      stream.enqueue(Buffer.from('{}'))
      stream.close()
    },
  })
  const route = await openRoute(shop, what === 'read' ? {} : { admit }, once)
  const call = { account: 'acct_1:test', operation: 'slow', key: randomUUID(), input: 1 }
  // Something that runs, and is waited for: meanwhile the store is open.
  const running = once.execute(call, async () => {
    await work.pass()
    return 1
  })
  const sent = route.send({}, body)
  await Promise.all([gate.reached, work.reached])
  const closed = once.close()
  gate.open()
  const answer = await sent
  work.open()
  await Promise.all([running, closed])
  expect(await answer.json()).toMatchObject({ code: 'closed' })
  expect([answer.status, route.runs()]).toEqual([503, 0])
})
