import { expect } from 'vitest'
import type { RoutePolicy } from '../../../src/http/index.ts'
import { makeGate } from '../../contract/shop.ts'
import { type Bench, topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

export const concurrency = topic('Duplicates at the same time', (one) => {
  /** A request that has reached its handler and waits there. */
  const held = async (bench: Bench, policy: RoutePolicy) => {
    const gate = makeGate()
    const route = {
      policy: { operation: 'things.create', ...policy },
      async handle() {
        await gate.pass()
        return { do: 'json', status: 201, value: { at: performance.now() } } as const
      },
    }
    const served = await bench.serve([route, { path: '/others' }])
    const key = crypto.randomUUID()
    const first = served.send({ key })
    await gate.reached
    return { served, key, first, gate, route }
  }

  for (const protect of ['handler', 'transaction'] as const) {
    one(`${protect}: one that is in progress is 409, and tells when to come again`, async (bench) => {
      const { served, key, first, gate } = await held(bench, { protect })
      expectProblem(await served.send({ key }), 'in_progress', { retryAfter: true })
      gate.open()
      expectReplay(await first, await served.send({ key }))
      expect(served.runs).toBe(1)
    })

    one(`${protect}: or 202, where the route says so`, async (bench) => {
      const { served, key, first, gate } = await held(bench, { protect, onConcurrent: 'accepted' })
      expectProblem(await served.send({ key }), 'in_progress', { status: 202, retryAfter: true })
      gate.open()
      expectReplay(await first, await served.send({ key }))
      expect(served.runs).toBe(1)
    })

    one(`${protect}: or it waits for the reply`, async (bench) => {
      const { served, key, first, gate } = await held(bench, { protect, onConcurrent: { waitMs: 15_000 } })
      const waiting = [served.send({ key }), served.send({ key })]
      // Whoever came later was answered: the duplicates have arrived, and wait.
      await served.send({ path: '/others' })
      gate.open()
      const reply = await first
      for (const replay of await Promise.all(waiting)) expectReplay(reply, replay)
      expect(served.runs).toBe(2)
    })

    one(`${protect}: but no longer than the route allows`, async (bench) => {
      const { served, key, first, gate } = await held(bench, { protect, onConcurrent: { waitMs: 20 } })
      expectProblem(await served.send({ key }), 'in_progress', { retryAfter: true })
      gate.open()
      expect((await first).status).toBe(201)
    })

    one(`${protect}: another request under the same key is 422 meanwhile`, async (bench) => {
      const { served, key, first, gate } = await held(bench, { protect })
      expectProblem(await served.send({ key, body: { other: 1 } }), 'key_reused')
      gate.open()
      expectReplay(await first, await served.send({ key }))
      expect(served.runs).toBe(1)
    })
  }

  one('handler: a duplicate in another process hears the same', async (bench) => {
    const { key, first, gate, route } = await held(bench, {})
    const elsewhere = await bench.serve(route)
    expectProblem(await elsewhere.send({ key }), 'in_progress', { retryAfter: true })
    gate.open()
    expectReplay(await first, await elsewhere.send({ key }))
    expect(elsewhere.runs).toBe(0)
  })

  one('a storm of duplicates runs once, and nobody hears anything but 201 or 409', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const storm = await Promise.all(Array.from({ length: 50 }, () => served.send({ key })))
    const statuses = new Set(storm.map(({ status }) => status))
    expect([...statuses].every((status) => status === 201 || status === 409)).toBe(true)
    const replies = storm.filter(({ status }) => status === 201)
    expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
    expect(replies.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1)
    expect(served.runs).toBe(1)
  })
})
