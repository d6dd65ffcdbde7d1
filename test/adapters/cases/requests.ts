import { expect } from 'vitest'
import type { Signal } from '../../../src/entries/observe.ts'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import type { RouteInput } from '../under-test.ts'

const echo = ({ body }: RouteInput) => ({ do: 'json', status: 200, value: { body: body ?? null } }) as const

export const requests = topic('Bodies of requests', (one) => {
  one('the layer first: the handler still gets the body', async (bench) => {
    const served = await bench.serve({ handle: echo })
    const { first, again } = await served.twice({ body: { amount: 5, to: ['ä'] } })
    expect(first.json().body).toEqual({ amount: 5, to: ['ä'] })
    expectReplay(first, again)
  })

  one('the layer first: text counts by its bytes', async (bench) => {
    const served = await bench.serve({ handle: echo })
    const key = crypto.randomUUID()
    const headers = { 'content-type': 'text/plain' }
    const first = await served.send({ key, body: '{"a": 1}', headers })
    expectReplay(first, await served.send({ key, body: '{"a": 1}', headers }))
    expectProblem(await served.send({ key, body: '{"a":1}', headers }), 'key_reused')
    expectProblem(await served.send({ key, body: '{"a": 1}' }), 'key_reused')
  })

  one('the layer first: no body at all', async (bench) => {
    const served = await bench.serve({ handle: () => ({ do: 'empty', status: 204 }) })
    const key = crypto.randomUUID()
    const first = await served.send({ key, body: null })
    expectReplay(first, await served.send({ key, body: null }))
    expectProblem(await served.send({ key, body: {} }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one('the layer first: a body just below the limit of the parser', async (bench) => {
    const served = await bench.serve({ handle: ({ body }) => ({ do: 'json', status: 200, value: body }) })
    const body = { text: 'x'.repeat(100_000) }
    const { first, again } = await served.twice({ body })
    expect(first.json()).toEqual(body)
    expectReplay(first, again)
  })

  one('the layer first: JSON that names a member twice is refused', async (bench) => {
    const served = await bench.serve()
    expectProblem(await served.send({ body: '{"amount":1,"amount":100}' }), 'json_duplicate_member')
    expect(served.runs).toBe(0)
  })

  one(
    'the parser first, keeping the bytes: the same contract',
    async (bench) => {
      const served = await bench.serve({ order: 'parser_first_bytes_kept', handle: echo })
      const key = crypto.randomUUID()
      const first = await served.send({ key, body: '{"a":1,"b":2}' })
      expect(first.json().body).toEqual({ a: 1, b: 2 })
      expectReplay(first, await served.send({ key, body: '{"b":2,"a":1}' }))
      expectProblem(await served.send({ key, body: '{"b":2,"a":3}' }), 'key_reused')
      expectProblem(await served.send({ body: '{"a":1,"a":100}' }), 'json_duplicate_member')
      expect(served.runs).toBe(1)
    },
    ['bytes_kept'],
  )

  one(
    'the parser first, keeping nothing: refused, the developer is told what to do about it, and nothing runs',
    async (bench) => {
      const told: string[] = []
      const signal = (given: Signal) => void (given.signal === 'mistake' && told.push(given.message))
      const served = await bench.serve({ order: 'parser_first' }, { observe: { signal } })
      const refused = await served.send({ body: { a: 1 } })
      expectProblem(refused, 'raw_body_missing')
      expect(refused.json().detail).not.toContain('keepRawBody')
      expect(told).toEqual([expect.stringContaining('keepRawBody')])
      expect(served.runs).toBe(0)
    },
    ['parser_first'],
  )

  one(
    "the parser first, and the route declares body: 'parsed'",
    async (bench) => {
      const policy = { fingerprint: { body: 'parsed' } } as const
      const served = await bench.serve({ order: 'parser_first', policy, handle: echo })
      const key = crypto.randomUUID()
      const first = await served.send({ key, body: '{"a":1,"b":{"c":2,"d":3}}' })
      expectReplay(first, await served.send({ key, body: '{"b":{"d":3,"c":2},"a":1}' }))
      expectProblem(await served.send({ key, body: '{"a":1,"b":{"c":2,"d":4}}' }), 'key_reused')
      expect(served.runs).toBe(1)
    },
    ['parser_first'],
  )

  one(
    'the parser first, and there is no body: nothing is missing',
    async (bench) => {
      const served = await bench.serve({ order: 'parser_first' })
      const { first, again } = await served.twice({ body: null })
      expectReplay(first, again)
    },
    ['parser_first'],
  )

  one('fields that do not count', async (bench) => {
    const policy = { fingerprint: { exclude: ['/sent_at'] } }
    const served = await bench.serve({ policy, handle: echo })
    const key = crypto.randomUUID()
    const first = await served.send({ key, body: { amount: 1, sent_at: 'now' } })
    expectReplay(first, await served.send({ key, body: { amount: 1, sent_at: 'later' } }))
    expectProblem(await served.send({ key, body: { amount: 2, sent_at: 'now' } }), 'key_reused')
  })
})
