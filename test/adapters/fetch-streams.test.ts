import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import type { RoutePolicy } from '../../src/http/index.ts'
import type { Onlyonce } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { makeGate, openShop, waitUntil } from '../contract/shop.ts'

let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  once = (await openShop()).open()
})

const CALL = { account: 'acct_1', operation: 'reports.create' }
const stateOf = async (key: string) => (await once.explain({ ...CALL, key })).state
const isCompleted = (key: string) =>
  waitUntil('the reply is stored', async () => (await stateOf(key)) === 'completed')

function protect(
  source: (runs: number) => ReadableStream<Uint8Array> | null,
  policy: Omit<RoutePolicy, 'operation' | 'input'> = {},
) {
  let runs = 0
  const options = { account: () => CALL.account, operation: CALL.operation, stream: true, ...policy }
  return idempotent(once, options, () => {
    runs += 1
    return new Response(source(runs), { status: 201, headers: { 'content-type': 'text/csv' } })
  })
}

function makeRequest(key: string, signal?: AbortSignal): Request {
  const init = { method: 'POST', headers: { 'Idempotency-Key': key }, ...(signal && { signal }) }
  return new Request('http://localhost/reports', init)
}

/** Lines that come one by one; before the last of them somebody has to open the gate. */
function linesOf(lines: readonly string[], gate = makeGate()): ReadableStream<Uint8Array> {
  let i = 0
  return new ReadableStream({
    async pull(controller) {
      if (i === lines.length - 1) await gate.pass()
      if (i < lines.length) controller.enqueue(new TextEncoder().encode(lines[i]))
      else controller.close()
      i += 1
    },
  })
}

const readOne = async (reader: ReadableStreamDefaultReader<Uint8Array>) =>
  new TextDecoder().decode((await reader.read()).value)

test('a stream leaves while it is made, and is replayed as a whole', async () => {
  const key = randomUUID()
  const gate = makeGate()
  const POST = protect((runs) => linesOf([`run ${runs}\n`, 'b\n', 'c\n'], gate))
  const first = await POST(makeRequest(key))
  const reader = first.body!.getReader()
  expect([await readOne(reader), await stateOf(key)]).toEqual(['run 1\n', 'in_progress'])
  gate.open()
  expect([await readOne(reader), await readOne(reader)]).toEqual(['b\n', 'c\n'])
  expect((await reader.read()).done).toBe(true)
  await isCompleted(key)
  const again = await POST(makeRequest(key))
  expect([again.status, await again.text(), again.headers.get('content-type')]).toEqual([
    201,
    'run 1\nb\nc\n',
    'text/csv',
  ])
  expect(again.headers.get('idempotent-replayed')).toBe('true')
})

test.each<[string, (response: Response, client: AbortController) => unknown]>([
  ['whose client is gone, as the server says', (response) => response.body!.cancel()],
  ['whose client is gone, as the signal says', (_, client) => client.abort()],
])('a stream %s is made to its end all the same', async (_, leave) => {
  const key = randomUUID()
  const gate = makeGate()
  const client = new AbortController()
  const POST = protect(() => linesOf(['a\n', 'b\n', 'c\n'], gate))
  const first = await POST(makeRequest(key, client.signal))
  await leave(first, client)
  gate.open()
  await isCompleted(key)
  expect(await (await POST(makeRequest(key))).text()).toBe('a\nb\nc\n')
})

test('what a signal has cut off does not look whole', async () => {
  const gate = makeGate()
  const client = new AbortController()
  const POST = protect(() => linesOf(['a\n', 'b\n', 'c\n'], gate))
  const first = await POST(makeRequest(randomUUID(), client.signal))
  client.abort()
  gate.open()
  await expect(first.text()).rejects.toThrow('The client was gone')
})

test('a client that was gone before the stream began changes nothing', async () => {
  const key = randomUUID()
  const gate = makeGate()
  gate.open()
  const POST = protect(() => linesOf(['a\n', 'b\n'], gate))
  await POST(makeRequest(key, AbortSignal.abort()))
  await isCompleted(key)
  expect(await (await POST(makeRequest(key))).text()).toBe('a\nb\n')
})

test('nobody who takes nothing makes the stream run ahead', async () => {
  let made = 0
  const endless = new ReadableStream({
    pull(controller) {
      made += 1
      controller.enqueue(new Uint8Array(1_000))
    },
  })
  const key = randomUUID()
  const first = await protect(() => endless)(makeRequest(key))
  const reader = first.body!.getReader()
  await reader.read()
  expect(await stateOf(key)).toBe('in_progress')
  expect(made).toBeLessThan(5)
})

test('a stream that breaks off breaks off for the client too, and has failed', async () => {
  const key = randomUUID()
  const broken = () =>
    new ReadableStream({
      pull(controller) {
        controller.error(new Error('the disk is gone'))
      },
    })
  const POST = protect(broken)
  const first = await POST(makeRequest(key))
  await expect(first.text()).rejects.toThrow('the disk is gone')
  await isCompleted(key)
  expect(await (await POST(makeRequest(key))).json()).toMatchObject({ code: 'handler_failed' })
})

test('a stream of more than the limit is sent whole, and not kept', async () => {
  const key = randomUUID()
  const gate = makeGate()
  gate.open()
  const POST = protect(() => linesOf(['a\n', 'b\n', 'c\n'], gate), { replySizeMaxBytes: 5 })
  expect(await (await POST(makeRequest(key))).text()).toBe('a\nb\nc\n')
  await isCompleted(key)
  expect(await (await POST(makeRequest(key))).json()).toMatchObject({ code: 'reply_not_kept' })
})

test('no body is a reply too', async () => {
  const key = randomUUID()
  const POST = protect(() => null)
  expect((await POST(makeRequest(key))).status).toBe(201)
  await isCompleted(key)
  expect((await POST(makeRequest(key))).headers.get('idempotent-replayed')).toBe('true')
})
