import { expect } from 'vitest'
import type { Admission, Asked, RoutePolicy } from '../../../src/http/index.ts'
import { operation, reply } from '../../../src/index.ts'
import { makeGate } from '../../contract/shop.ts'
import { type Bench, topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

const LIMITED: Admission = {
  admit: false,
  code: 'rate_limited',
  retryAfterMs: 2_500,
  headers: { RateLimit: '"a";r=0;t=3', 'Content-Type': 'text/html' },
}

let names = 0

/** Every kind of protection that a route can have. */
const KINDS: readonly (() => RoutePolicy)[] = [
  () => ({ protect: 'handler', operation: 'things.admitted' }),
  () => ({ protect: 'transaction', operation: 'things.admitted' }),
  () => ({
    operation: operation(`things.admitted_${++names}`, async () => reply(201, { at: Math.random() })),
  }),
]

async function recordsOf(bench: Bench, key: string): Promise<number> {
  const { rows } = await bench.shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])
  return rows.length
}

export const admission = topic('Admission', (one) => {
  one('a refused request claims no key; replays and reused keys are answered unasked', async (bench) => {
    for (const kind of KINDS) {
      const asked: Asked[] = []
      let open = false
      const admit = (about: Asked): Admission => {
        asked.push(about)
        return open ? { admit: true } : LIMITED
      }
      const served = await bench.serve({ policy: { ...kind(), admit } })
      const sent = { key: crypto.randomUUID(), account: 'acct_ad', body: '{"card":"pm_1"}' }
      const refused = await served.send({ ...sent, headers: { 'x-device': 'd1' } })
      expectProblem(refused, 'rate_limited', { retryAfter: true })
      expect([refused.headers['retry-after'], refused.headers.ratelimit]).toEqual(['3', '"a";r=0;t=3'])
      expect([await recordsOf(bench, sent.key), served.runs]).toEqual([0, 0])
      expect(asked[0]).toMatchObject({ account: 'acct_ad', key: sent.key })
      expect(asked[0]!.operation).toMatch(/^things\.admitted/)
      expect([asked[0]!.body(), asked[0]!.header('X-Device')]).toEqual([{ card: 'pm_1' }, 'd1'])
      open = true
      const first = await served.send(sent)
      expect(first.status).toBe(201)
      open = false
      expectReplay(first, await served.send(sent))
      expectReplay(first, await served.send(sent))
      expectProblem(await served.send({ ...sent, body: '{"card":"pm_2"}' }), 'key_reused')
      expect(asked).toHaveLength(2)
    }
  })

  one('what is in progress is answered unasked, what may run again is asked about again', async (bench) => {
    const gate = makeGate()
    let asked = 0
    const served = await bench.serve({
      policy: {
        operation: 'things.admitted',
        final: { 503: 'retry' },
        admit: () => {
          asked += 1
          return asked < 3 ? { admit: true } : { admit: false, code: 'overloaded' }
        },
      },
      async handle(_, runs) {
        if (runs === 1) await gate.pass()
        return { do: 'json', status: 503, value: {} }
      },
    })
    const key = crypto.randomUUID()
    const first = served.send({ key })
    await gate.reached
    expectProblem(await served.send({ key }), 'in_progress', { retryAfter: true })
    expect(asked).toBe(1)
    gate.open()
    expect((await first).status).toBe(503)
    expect((await served.send({ key })).status).toBe(503)
    expect([asked, served.runs]).toEqual([2, 2])
    expectProblem(await served.send({ key }), 'overloaded')
    expect([asked, served.runs]).toEqual([3, 2])
  })

  one('what admit throws is for the framework, and claims no key', async (bench) => {
    let broken = true
    const admit = async (): Promise<Admission> => {
      if (broken) throw Object.assign(new Error('a bug'), { status: 500 })
      return { admit: true }
    }
    const served = await bench.serve({ policy: { operation: 'things.admitted', admit } })
    const key = crypto.randomUUID()
    const thrown = await served.send({ key })
    expect(thrown.status).toBe(500)
    expect(thrown.headers['content-type']).not.toBe('application/problem+json')
    expect([await recordsOf(bench, key), served.runs]).toEqual([0, 0])
    broken = false
    expect((await served.send({ key })).status).toBe(201)
  })
})
