import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { RoutePolicy, StandardSchema } from '../../../src/http/index.ts'
import { invalid, notExecuted, operation, reply } from '../../../src/index.ts'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import type { Result, RouteInput } from '../under-test.ts'

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

const PROTECTIONS: readonly (() => RoutePolicy)[] = [
  () => ({ protect: 'handler', operation: 'things.refused' }),
  () => ({ protect: 'transaction', operation: 'things.refused' }),
]

/** The ways in which a handler says it, and what the client is told. */
const REFUSALS: Readonly<Record<string, { readonly status: number; readonly body: object }>> = {
  throws: { status: 400, body: { code: 'request_invalid', detail: expect.stringMatching(/Too small.$/) } },
  throws_a_body: { status: 422, body: { error: 'too_small' } },
  tells_its_context: { status: 409, body: { error: 'too_small' } },
  replies_itself: { status: 418, body: { mine: true } },
}

function refuseSmall({ body, once }: RouteInput): Result {
  const { amount, how } = body as { amount: number; how: string }
  const own = { do: 'json', status: 418, value: { mine: true } } as const
  if (amount >= 10) return { do: 'json', status: 201, value: { at: performance.now() } }
  switch (how) {
    case 'throws':
      return { do: 'throw', error: invalid({ detail: 'Too small.' }) }
    case 'throws_a_body':
      return { do: 'reject', error: invalid({ status: 422, body: { error: 'too_small' } }) }
    case 'tells_its_context':
      once!.invalid({ status: 409, body: { error: 'too_small' } })
      return own
    default:
      once!.invalid()
      return own
  }
}

export const validation = topic('Validation', (one) => {
  one('a body that is not JSON is 415, and not told to be empty', async (bench) => {
    for (const kind of KINDS) {
      const served = await bench.serve({ policy: { ...kind(), validate: schema } })
      const key = randomUUID()
      const text = { key, body: 'amount=5', headers: { 'content-type': 'text/plain' } }
      expectProblem(await served.send(text), 'body_not_json')
      expect((await served.send({ key, body: { amount: 5 } })).status).toBe(201)
    }
  })

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

  one('what a schema throws goes to the framework, and says nothing of the key', async (bench) => {
    for (const made of [notExecuted, () => invalid({ status: 422, body: { error: 'mine' } })]) {
      let throws = false
      const validate = async (value: unknown) => {
        if (throws) throw made()
        return { value }
      }
      const throwing: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate } }
      const served = await bench.serve({ policy: { operation: 'things.thrown', validate: throwing } })
      const sent = { key: randomUUID(), body: { amount: 5 } }
      const first = await served.send(sent)
      throws = true
      const { headers, text } = await served.send(sent)
      expect(headers['content-type']).not.toBe('application/problem+json')
      expect(text).not.toMatch(/"executed"|mine/)
      throws = false
      expectReplay(first, await served.send(sent))
      expect(served.runs).toBe(1)
    }
  })

  one('a schema that never answers starts nothing, and takes no reply from a retry', async (bench) => {
    let hangs = false
    const validate = (value: unknown) => (hangs ? new Promise<never>(() => {}) : { value })
    const hanging: StandardSchema = { '~standard': { version: 1, vendor: 'test', validate } }
    const policy = { operation: 'things.hanging', validate: hanging, deadlineMs: 300 }
    const served = await bench.serve({ policy })
    const sent = { key: randomUUID(), body: { amount: 5 } }
    const first = await served.send(sent)
    hangs = true
    const [again, other] = await Promise.all([served.send(sent), served.send({ body: { amount: 5 } })])
    expectReplay(first, again)
    expectProblem(other, 'deadline_exceeded')
    expect(served.runs).toBe(1)
  })

  one('a key that an earlier request has left retryable is not called free', async (bench) => {
    const served = await bench.serve({
      policy: { operation: 'things.validated', validate: schema },
      handle: ({ once }) => {
        once!.notExecuted()
        return { do: 'json', status: 503, value: {} }
      },
    })
    const key = randomUUID()
    expect((await served.send({ key, body: { amount: 5 } })).status).toBe(503)
    least = 10
    try {
      expectProblem(await served.send({ key, body: { amount: 5 } }), 'request_invalid_kept')
      expectProblem(await served.send({ key, body: { amount: 11 } }), 'key_reused')
    } finally {
      least = 1
    }
    expect(served.runs).toBe(1)
  })

  one('what a handler calls invalid leaves no record, and the corrected body runs', async (bench) => {
    for (const kind of PROTECTIONS) {
      const served = await bench.serve({ policy: kind(), handle: refuseSmall })
      const recordsOf = async (key: string) =>
        (await bench.shop.observer.query('SELECT state FROM onlyonce.records WHERE key = $1', [key])).rows
      for (const [how, expected] of Object.entries(REFUSALS)) {
        const key = randomUUID()
        const refused = await served.send({ key, body: { amount: 1, how } })
        expect([how, refused.status]).toEqual([how, expected.status])
        expect(refused.json()).toMatchObject(expected.body)
        expect(refused.headers['idempotent-replayed']).toBeUndefined()
        expect(await recordsOf(key)).toEqual([])
        const corrected = { key, body: { amount: 10, how } }
        const first = await served.send(corrected)
        expect(first.status).toBe(201)
        expectReplay(first, await served.send(corrected))
        expectProblem(await served.send({ key, body: { amount: 1, how } }), 'key_reused')
      }
    }
  })

  one('an operation that calls its request invalid leaves no record', async (bench) => {
    const durable = operation(`things.refused_${++names}`, async (_, input: { amount: number }) => {
      if (input.amount < 10)
        throw invalid({ status: 422, issues: [{ path: '/amount', message: 'Too small' }] })
      return reply(201, { input })
    })
    const served = await bench.serve({ policy: { operation: durable } })
    const key = randomUUID()
    const refused = await served.send({ key, body: { amount: 1 } })
    expect(refused.status).toBe(422)
    expect(refused.json()).toMatchObject({ code: 'request_invalid', issues: [{ path: '/amount' }] })
    const first = await served.send({ key, body: { amount: 10 } })
    expect(first.status).toBe(201)
    expectReplay(first, await served.send({ key, body: { amount: 10 } }))
  })

  one('a status of 400 alone frees no key, nor does a reply that contradicts the word', async (bench) => {
    const served = await bench.serve({
      policy: { operation: 'things.plain_400' },
      handle: ({ body, once }) => {
        const { status, says } = body as { status: number; says: boolean }
        if (says) once!.invalid()
        return { do: 'json', status, value: { at: performance.now() } }
      },
    })
    for (const body of [
      { status: 400, says: false },
      { status: 201, says: true },
      { status: 500, says: true },
    ]) {
      const key = randomUUID()
      const first = await served.send({ key, body })
      expect(first.status).toBe(body.status)
      expectReplay(first, await served.send({ key, body }))
      expectProblem(await served.send({ key, body: { ...body, corrected: true } }), 'key_reused')
    }
  })

  one('duplicates that wait for a request that is called invalid run themselves', async (bench) => {
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const begun: (() => void)[] = []
    const running = new Promise<void>((resolve) => begun.push(resolve))
    const served = await bench.serve({
      policy: { operation: 'things.waited_for', onConcurrent: { waitMs: 30_000 } },
      handle: async (_, runs) => {
        if (runs > 1) return { do: 'json', status: 201, value: { runs } }
        begun[0]!()
        await gate
        return { do: 'reject', error: invalid() }
      },
    })
    const key = randomUUID()
    const first = served.send({ key, body: { amount: 1 } })
    await running
    const waiting = served.send({ key, body: { amount: 1 } })
    const other = await served.send({ key, body: { amount: 2 } })
    expectProblem(other, 'key_reused')
    open()
    expectProblem(await first, 'request_invalid')
    const second = await waiting
    expect([second.status, second.headers['idempotent-replayed']]).toEqual([201, undefined])
    expect(served.runs).toBe(2)
  })
})
