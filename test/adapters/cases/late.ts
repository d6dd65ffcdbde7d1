import { Readable } from 'node:stream'
import { expect } from 'vitest'
import { makeGate } from '../../contract/shop.ts'
import { waitUntil } from '../../setup/wait.ts'
import { type Served, topic } from '../case.ts'
import { Client } from '../client.ts'
import { expectProblem } from '../expectations.ts'
import type { Result } from '../under-test.ts'

const OPERATION = 'things.create'
const POLICY = { operation: OPERATION, inProgressMaxMs: 100 }

export const late = topic('A reply after the time of its handler', (one) => {
  one('completes the record, and retries get it with its headers', async (bench) => {
    const gate = makeGate()
    const served = await bench.serve({
      policy: POLICY,
      async handle({ once, setHeader }) {
        if (once?.key === undefined) return { do: 'json', status: 200, value: {} }
        setHeader('location', '/things/1')
        await gate.pass()
        const headers = [['etag', '"late"']] as const
        return { do: 'json', status: 201, headers, value: { late: true } }
      },
    })
    const key = crypto.randomUUID()
    const first = await givenUp(served, key)
    expect([first.headers.location, first.headers.etag]).toEqual([undefined, undefined])
    gate.open()
    await completed(served, key)
    const again = await served.send({ key })
    expect([again.status, again.json()]).toEqual([201, { late: true }])
    const { location, etag, 'content-type': type, 'idempotent-replayed': replayed } = again.headers
    expect([location, etag, replayed]).toEqual(['/things/1', '"late"', 'true'])
    expect(type).toMatch(/^application\/json/)
    expect(served.runs).toBe(1)
  })

  const pieces = async function* (gate?: { pass(): Promise<void> }) {
    yield Buffer.from('first ')
    await gate?.pass()
    yield Buffer.from('second')
  }
  const WAYS: Readonly<Record<string, (gate: { pass(): Promise<void> }) => Result | Promise<Result>>> = {
    'a stream that is under way': (gate) => streamed(Readable.from(pieces(gate))),
    'a stream that begins later': (gate) => gate.pass().then(() => streamed(Readable.from(pieces()))),
    'a reply in pieces': (gate) =>
      gate
        .pass()
        .then(() => ({ do: 'chunks', status: 202, type: 'text/plain', chunks: ['first ', 'second'] })),
  }
  for (const [way, handle] of Object.entries(WAYS)) {
    one(`${way} is kept whole`, async (bench) => {
      const gate = makeGate()
      const served = await bench.serve({ policy: POLICY, handle: () => handle(gate) })
      const key = crypto.randomUUID()
      await givenUp(served, key)
      gate.open()
      await completed(served, key)
      const again = await served.send({ key })
      expect([again.status, again.text]).toEqual([202, 'first second'])
    })
  }

  one('is kept with stream: true as well, where nothing of it had left', async (bench) => {
    const gate = makeGate()
    const served = await bench.serve({
      policy: { ...POLICY, stream: true },
      handle: () => gate.pass().then(() => streamed(Readable.from(pieces()))),
    })
    const key = crypto.randomUUID()
    await givenUp(served, key)
    expect((await served.once.explain({ account: 'acct_1', operation: OPERATION, key })).state).not.toBe(
      'completed',
    )
    gate.open()
    await completed(served, key)
    const again = await served.send({ key })
    expect([again.status, again.text]).toEqual([202, 'first second'])
  })

  one('goes nowhere but into the record: the connection serves others meanwhile', async (bench) => {
    const gate = makeGate()
    const served = await bench.serve({
      policy: POLICY,
      async handle(_, runs) {
        if (runs === 1) await gate.pass()
        return { do: 'text', status: 200, text: `run ${runs}` }
      },
    })
    const client = new Client(served.port, 1)
    const key = crypto.randomUUID()
    expectProblem(await client.send({ key }), 'outcome_unknown')
    expect((await client.send()).text).toBe('run 2')
    gate.open()
    expect((await client.send()).text).toBe('run 3')
    await completed(served, key)
    expect((await client.send({ key })).text).toBe('run 1')
  })

  one('that is a failure says nothing: the record stays in doubt', async (bench) => {
    const gate = makeGate()
    const served = await bench.serve({
      policy: POLICY,
      async handle(_, runs) {
        if (runs > 1) return { do: 'empty', status: 204 }
        await gate.pass()
        return { do: 'reject', error: new Error('aborted') }
      },
    })
    const key = crypto.randomUUID()
    await givenUp(served, key)
    gate.open()
    // By the time that others have been served, it would have been stored.
    for (let i = 0; i < 3; i += 1) await served.send()
    expectProblem(await served.send({ key }), 'outcome_pending', { retryAfter: true })
  })
})

const streamed = (stream: Readable): Result => ({ do: 'stream', status: 202, type: 'text/plain', stream })

/** The client of a handler that has not answered in time; its record says that it is in doubt. */
async function givenUp(served: Served, key: string) {
  const first = await served.send({ key })
  expectProblem(first, 'outcome_unknown')
  await inState(served, key, 'unknown')
  return first
}

const completed = (served: Served, key: string) => inState(served, key, 'completed')

async function inState(served: Served, key: string, state: string): Promise<void> {
  const id = { account: 'acct_1', operation: OPERATION, key }
  await waitUntil(
    `the record is ${state}`,
    async () => (await served.once.explain(id)).state === state,
    5_000,
  )
}
