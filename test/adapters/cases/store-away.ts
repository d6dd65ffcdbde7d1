import { expect } from 'vitest'
import { leaveEffect, makeGate, openProxy } from '../../contract/shop.ts'
import { waitUntil } from '../../setup/wait.ts'
import { topic } from '../case.ts'
import type { Received } from '../client.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

const BOUNDS = { statementMaxMs: 600, connectionWaitMaxMs: 1_000, settleMaxMs: 500 }
/** Given back soon: the cases share one database. */
const FEW = { max: 3, idleTimeoutMillis: 200 }
const OPERATION = 'things.create'

export const storeAway = topic('A store that is away, and time that is over', (one) => {
  for (const protect of ['handler', 'transaction'] as const) {
    one(`${protect}: away at the claim is 503, nothing runs, and later it goes on`, async (bench) => {
      const { proxy, pool, heal } = await openProxy(bench.shop, { poolOptions: FEW })
      const served = await bench.serve(
        { policy: { protect, deadlineMs: 600 } },
        { pool, store: BOUNDS, deadlineMs: 600 },
      )
      await served.once.start()
      proxy.setFault({ kind: 'reset' })
      await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
      proxy.setFault({ kind: 'refuse' })
      const key = crypto.randomUUID()
      const refused = await served.send({ key })
      expect(refused.status).toBe(503)
      expect(['store_unavailable', 'pool_exhausted']).toContain(refused.json().code)
      expect(refused.json().retryable).toBe(true)
      expect(served.runs).toBe(0)
      await heal()
      expect((await onceItIsBack(() => served.send({ key }))).status).toBe(201)
      expect(served.runs).toBe(1)
    })
  }

  one('handler: away at the save is 503 outcome unknown; the retry learns the truth', async (bench) => {
    const { proxy, pool, heal } = await openProxy(bench.shop, { poolOptions: FEW })
    const gate = makeGate()
    const policy = { operation: OPERATION, deadlineMs: 1_500 }
    const served = await bench.serve(
      {
        policy,
        async handle() {
          await gate.pass()
          return { do: 'json', status: 201, value: {} }
        },
      },
      { pool, store: BOUNDS },
    )
    const key = crypto.randomUUID()
    const first = served.send({ key })
    await gate.reached
    proxy.setFault({ kind: 'reset' })
    await proxy.waitFor(({ connectionsOpen }) => connectionsOpen === 0)
    proxy.setFault({ kind: 'refuse' })
    gate.open()
    expectProblem(await first, 'outcome_unknown')
    await heal()
    // The save goes on without the caller: until it is done the request is in progress, and then it is replayed.
    let retry = await onceItIsBack(() => served.send({ key }))
    await waitUntil('it is saved', async () => {
      retry = await served.send({ key })
      return retry.status !== 409
    })
    expect(retry.status).toBe(201)
    expect(retry.headers['idempotent-replayed']).toBe('true')
    expect(served.runs).toBe(1)
  })

  one('transaction: a lost answer to COMMIT is told right', async (bench) => {
    const { proxy, pool } = await openProxy(bench.shop, { poolOptions: FEW })
    const served = await bench.serve(
      {
        policy: { protect: 'transaction' },
        async handle({ once }) {
          await leaveEffect(once!.tx, once!.key)
          return { do: 'json', status: 201, value: { at: performance.now() } }
        },
      },
      { pool },
    )
    await served.send()
    proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'after_answer', times: 1 })
    const key = crypto.randomUUID()
    const { first, again } = await served.twice({ key })
    expect(first.status).toBe(201)
    expectReplay(first, again)
    expect(await bench.shop.countEffects(key)).toBe(1)
  })

  one(
    'transaction: where nobody can tell, 503 outcome unknown; the retry learns the truth',
    async (bench) => {
      const { proxy, pool, heal } = await openProxy(bench.shop, { poolOptions: FEW })
      const served = await bench.serve(
        {
          policy: { protect: 'transaction', deadlineMs: 2_000 },
          async handle({ once }) {
            await leaveEffect(once!.tx, once!.key)
            return { do: 'json', status: 201, value: {} }
          },
        },
        { pool, store: BOUNDS },
      )
      await served.send()
      const cut = proxy.once('commit_cut')
      proxy.setFault({ kind: 'cut_at_commit', when: 'after', serverCloses: 'after_answer', times: 1 })
      const key = crypto.randomUUID()
      const first = served.send({ key })
      await cut
      proxy.setFault({ kind: 'refuse' })
      expectProblem(await first, 'outcome_unknown')
      await heal()
      const again = await served.send({ key })
      expect([again.status, again.headers['idempotent-replayed']]).toEqual([201, 'true'])
      expect(await bench.shop.countEffects(key)).toBe(1)
    },
  )

  one('a deadline that is past is 504 before any claim; one ahead is not', async (bench) => {
    const policy = { operation: OPERATION, deadlineHeader: 'X-Deadline' }
    const served = await bench.serve({ policy })
    const key = crypto.randomUUID()
    for (const past of ['1970-01-01T00:00:01Z', '2020-01-01T00:00:00Z', `${Date.now() - 1}`]) {
      expectProblem(await served.send({ key, headers: { 'x-deadline': past } }), 'deadline_exceeded')
    }
    const { state } = await served.once.explain({ account: 'acct_1', operation: OPERATION, key })
    expect([state, served.runs]).toEqual(['none', 0])
    const ahead = `${Date.now() + 60_000}`
    expect((await served.send({ key, headers: { 'x-deadline': ahead } })).status).toBe(201)
    // It is no part of what the request means.
    expect((await served.send({ key })).headers['idempotent-replayed']).toBe('true')
    // A replay starts nothing, so a deadline does not keep it from the client.
    const late = await served.send({ key, headers: { 'x-deadline': '2020-01-01T00:00:00Z' } })
    expect([late.status, late.headers['idempotent-replayed'], served.runs]).toEqual([201, 'true', 1])
    const other = { key, body: { other: true }, headers: { 'x-deadline': '2020-01-01T00:00:00Z' } }
    expectProblem(await served.send(other), 'key_reused')
  })

  one('a deadline that is no time is 400', async (bench) => {
    const served = await bench.serve({ policy: { deadlineHeader: 'X-Deadline' } })
    const seconds = `${Math.floor(Date.now() / 1_000) + 60}`
    for (const bad of [
      'soon',
      '-1',
      '2030-01-01',
      '2030-01-01T00:00:00',
      '1e9',
      '1000',
      seconds,
      `${seconds}000000`,
    ]) {
      expectProblem(await served.send({ headers: { 'x-deadline': bad } }), 'deadline_invalid')
    }
    expect(served.runs).toBe(0)
  })

  one('a handler that never answers does not own its key for ever', async (bench) => {
    const never = makeGate()
    const served = await bench.serve({
      policy: { leaseMs: 60, inProgressMaxMs: 100 },
      async handle() {
        await never.pass()
        return { do: 'empty', status: 204 }
      },
    })
    const key = crypto.randomUUID()
    const first = served.send({ key })
    await never.reached
    expectProblem(await first, 'outcome_unknown')
    let told = await served.send({ key })
    await waitUntil('the lease is over', async () => {
      told = await served.send({ key })
      return told.json().code !== 'in_progress'
    })
    expectProblem(told, 'outcome_pending', { retryAfter: true })
    never.open()
    expect(served.runs).toBe(1)
  })

  one(
    'transaction: a handler that never answers is rolled back, and the key is free again',
    async (bench) => {
      const never = makeGate()
      const served = await bench.serve(
        {
          policy: { protect: 'transaction' },
          async handle({ once }, runs) {
            await leaveEffect(once!.tx, once!.key)
            if (runs === 1) await never.pass()
            return { do: 'json', status: 201, value: {} }
          },
        },
        { store: { transactionMaxMs: 300 } },
      )
      const key = crypto.randomUUID()
      const first = await served.send({ key })
      expect([first.json().retryable, first.status >= 503]).toEqual([true, true])
      expect((await served.send({ key })).status).toBe(201)
      never.open()
      expect(await bench.shop.countEffects(key)).toBe(1)
    },
  )

  one('while the process shuts down new requests are 503, and what runs is finished', async (bench) => {
    const gate = makeGate()
    const served = await bench.serve({
      async handle() {
        await gate.pass()
        return { do: 'json', status: 201, value: {} }
      },
    })
    const first = served.send()
    await gate.reached
    const closing = served.once.close()
    expectProblem(await served.send(), 'closed')
    gate.open()
    expect((await first).status).toBe(201)
    await closing
    expect(served.runs).toBe(1)
  })
})

/** Connections that were cut are found out one by one. */
async function onceItIsBack(send: () => Promise<Received>): Promise<Received> {
  let received = await send()
  await waitUntil('the store is back', async () => {
    if (received.status === 503) received = await send()
    return received.status !== 503
  })
  return received
}
