import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { RoutePolicy, StandardSchema } from '../../../src/boundary/index.ts'
import { operation, reply } from '../../../src/index.ts'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'

/** An amount in whole units. Its messages quote what they were given, as those of some libraries do. */
let least = 1
const schema: StandardSchema = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: async (value) => {
      const { amount } = (value ?? {}) as { amount?: unknown }
      if (typeof amount === 'number' && amount >= least) return { value: { amount } }
      const message = amount === undefined ? 'Expected a number' : `Expected a number, received "${amount}"`
      return { issues: [{ message, path: ['amount'] }] }
    },
  },
}

let names = 0
const KINDS: readonly (() => RoutePolicy)[] = [
  () => ({ protect: 'handler', operation: 'things.validated' }),
  () => ({ protect: 'transaction', operation: 'things.validated' }),
  () => ({
    operation: operation(`things.validated_${++names}`, async (_, input: unknown) => reply(201, { input })),
  }),
]

export const validation = topic('Validation', (one) => {
  one('what is not valid claims no key, and the corrected body under the same key runs', async (bench) => {
    for (const kind of KINDS) {
      const served = await bench.serve({ policy: { ...kind(), validate: schema } })
      const key = randomUUID()
      const refused = await served.send({ key, body: { amount: '4242424242424242' } })
      expectProblem(refused, 'request_invalid')
      expect(refused.json().issues).toEqual([{ path: '/amount', message: 'It is not valid.' }])
      expect(refused.text).not.toContain('4242')
      expect((await served.send({ key, body: {} })).json().issues).toEqual([
        { path: '/amount', message: 'Expected a number' },
      ])
      const { rows } = await bench.shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])
      expect(rows).toEqual([])
      const first = await served.send({ key, body: { amount: 5 } })
      expect(first.status).toBe(201)
      expectReplay(first, await served.send({ key, body: { amount: 5 } }))
    }
  })

  one('a schema that became stricter takes no reply from a retry', async (bench) => {
    const served = await bench.serve({ policy: { operation: 'things.validated', validate: schema } })
    const key = randomUUID()
    const first = await served.send({ key, body: { amount: 5 } })
    least = 10
    try {
      expectReplay(first, await served.send({ key, body: { amount: 5 } }))
      expectProblem(await served.send({ key, body: { amount: 6 } }), 'key_reused')
      expectProblem(await served.send({ body: { amount: 5 } }), 'request_invalid')
    } finally {
      least = 1
    }
    expect(served.runs).toBe(1)
  })
})
