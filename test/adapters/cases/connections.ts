import { Readable } from 'node:stream'
import { expect } from 'vitest'
import { makeGate } from '../../contract/shop.ts'
import { waitUntil } from '../../setup/wait.ts'
import { type Served, topic } from '../case.ts'
import { Client, receive } from '../client.ts'
import { expectReplay } from '../expectations.ts'
import { RawConnection, rawPost } from '../raw.ts'

const OPERATION = 'things.create'

export const connections = topic('Connections', (one) => {
  one('many requests on one connection, replays and problems among them', async (bench) => {
    const served = await bench.serve([
      {},
      {
        path: '/chunks',
        handle: () => ({ do: 'chunks', status: 200, type: 'text/plain', chunks: ['a', 'b'] }),
      },
      { path: '/none', handle: () => ({ do: 'empty', status: 204 }) },
    ])
    const client = new Client(served.port, 1)
    const key = crypto.randomUUID()
    const first = await client.send({ key })
    for (let i = 0; i < 10; i += 1) {
      expectReplay(first, await client.send({ key }))
      expect((await client.send({ key, body: { i } })).status).toBe(422)
      expect((await client.send({ path: '/chunks', key })).text).toBe('ab')
      expect((await client.send({ path: '/none', key })).status).toBe(204)
      expect((await client.send({ key: null })).status).toBe(400)
    }
    const reused = client.open({ key })
    const response = new Promise<Parameters<typeof receive>[0]>((resolve) => reused.once('response', resolve))
    reused.end('{}')
    expectReplay(first, await receive(await response))
    expect(reused.reusedSocket).toBe(true)
  })

  one('requests that are sent before the first is answered are answered in order', async (bench) => {
    const served = await bench.serve({
      handle: ({ body }) => ({ do: 'json', status: 200, value: body }),
    })
    const connection = await RawConnection.open(served.port)
    const key = crypto.randomUUID()
    const sent = [
      rawPost(key, '{"a":1}'),
      rawPost(crypto.randomUUID(), '{"b":2}'),
      rawPost(key, '{"a":2}'),
      rawPost(crypto.randomUUID(), '{"c":3}'),
    ]
    connection.socket.write(sent.join(''))
    const bodies = []
    for (const _ of sent) bodies.push(JSON.parse((await connection.reply()).body))
    expect([bodies[0], bodies[1], bodies[3]]).toEqual([{ a: 1 }, { b: 2 }, { c: 3 }])
    expect(bodies[2].code).toBe('key_reused')
  })

  one('HTTP/1.0 is answered and closed', async (bench) => {
    const handle = () => ({ do: 'chunks', status: 200, type: 'text/plain', chunks: ['one', 'two'] }) as const
    const served = await bench.serve({ handle })
    const key = crypto.randomUUID()
    for (let i = 0; i < 2; i += 1) {
      const connection = await RawConnection.open(served.port)
      connection.socket.write(rawPost(key, '{}', { version: '1.0' }))
      const text = await connection.untilClosed()
      expect(text).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nonetwo$/)
    }
    expect(served.runs).toBe(1)
  })

  one('a client that asks first whether to send its body is told to go on', async (bench) => {
    const served = await bench.serve({ handle: ({ body }) => ({ do: 'json', status: 200, value: body }) })
    const body = '{"asked":true}'
    const headers = { expect: '100-continue', 'content-length': `${body.length}` }
    const request = served.client.open({ body, headers })
    request.flushHeaders()
    await new Promise((resolve) => request.once('continue', resolve))
    const response = new Promise<Parameters<typeof receive>[0]>((resolve) =>
      request.once('response', resolve),
    )
    request.end(body)
    expect((await receive(await response)).json()).toEqual({ asked: true })
  })

  one('a body in chunks, with pauses, is read whole by the layer and by the handler', async (bench) => {
    const served = await bench.serve({ handle: ({ body }) => ({ do: 'json', status: 200, value: body }) })
    const key = crypto.randomUUID()
    const connection = await RawConnection.open(served.port)
    const text = JSON.stringify({ text: 'x'.repeat(50_000) })
    connection.socket.write(
      `POST /things HTTP/1.1\r\nhost: localhost\r\nx-account: acct_1\r\nidempotency-key: ${key}\r\n` +
        'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
    )
    for (let at = 0; at < text.length; at += 9_000) {
      const piece = text.slice(at, at + 9_000)
      connection.socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`)
      await new Promise((resolve) => setImmediate(resolve))
    }
    connection.socket.write('0\r\n\r\n')
    expect((await connection.reply()).body).toBe(text)
    const again = await served.send({ key, body: text })
    expect(again.headers['idempotent-replayed']).toBe('true')
  })

  one('a client that hangs up before its request is whole leaves no trace', async (bench) => {
    const served = await bench.serve({ policy: { operation: OPERATION } })
    const key = crypto.randomUUID()
    const connection = await RawConnection.open(served.port)
    connection.socket.write(rawPost(key, '{"amount":100}').slice(0, -5))
    // An answer to a later request shows that the first half has arrived.
    await served.send()
    connection.socket.destroy()
    await served.send()
    const { state } = await served.once.explain({ account: 'acct_1', operation: OPERATION, key })
    expect(state).toBe('none')
    expect((await served.send({ key })).status).toBe(201)
    expect(served.runs).toBe(3)
  })

  const streamed = () => Readable.from(Array.from({ length: 20 }, () => Buffer.alloc(30_000, 'x')))
  const RESULTS = {
    JSON: () => ({ do: 'json', status: 201, value: {} }) as const,
    'a stream': () => ({ do: 'stream', status: 201, type: 'text/plain', stream: streamed() }) as const,
  }
  for (const [what, result] of Object.entries(RESULTS)) {
    one(`a client that hangs up while it runs changes nothing (${what})`, async (bench) => {
      const gate = makeGate()
      const served = await bench.serve({
        policy: { operation: OPERATION },
        async handle({ once }) {
          await gate.pass()
          expect(once!.signal.aborted).toBe(false)
          return result()
        },
      })
      const key = crypto.randomUUID()
      const connection = await RawConnection.open(served.port)
      connection.socket.write(rawPost(key, '{}'))
      await gate.reached
      connection.socket.resetAndDestroy()
      // The key is not given away while the work goes on.
      expect((await served.send({ key })).json().code).toBe('in_progress')
      gate.open()
      await completed(served, key)
      const replay = await served.send({ key })
      expect([replay.status, replay.headers['idempotent-replayed']]).toEqual([201, 'true'])
      if (what === 'a stream') expect(replay.body.length).toBe(600_000)
      expect(served.runs).toBe(1)
    })
  }

  one('a client that hangs up while a stream is under way changes nothing', async (bench) => {
    const gate = makeGate()
    async function* pieces() {
      yield Buffer.from('first ')
      await gate.pass()
      for (let i = 0; i < 20; i += 1) yield Buffer.alloc(30_000, 'x')
    }
    const served = await bench.serve({
      policy: { operation: OPERATION },
      handle: () => ({ do: 'stream', status: 200, type: 'text/plain', stream: Readable.from(pieces()) }),
    })
    const key = crypto.randomUUID()
    const connection = await RawConnection.open(served.port)
    connection.socket.write(rawPost(key, '{}'))
    await gate.reached
    connection.socket.resetAndDestroy()
    // Whoever is answered afterwards shows that the server has noticed the end.
    await served.send({ key: null })
    gate.open()
    await completed(served, key)
    expect((await served.send({ key })).body.length).toBe(600_006)
    expect(served.runs).toBe(1)
  })

  one('a client that hangs up at once, with its body unread, is served all the same', async (bench) => {
    const served = await bench.serve({
      policy: { operation: OPERATION },
      handle: ({ body }) => ({ do: 'json', status: 201, value: body }),
    })
    for (let i = 0; i < 20; i += 1) {
      const key = crypto.randomUUID()
      const body = JSON.stringify({ i, text: 'x'.repeat(20_000) })
      const connection = await RawConnection.open(served.port)
      connection.socket.write(rawPost(key, body), () => connection.socket.destroy())
      await waitUntil('the connection is gone', () => connection.socket.closed)
      const reply = await answered(served, key, body)
      expect([reply.status, reply.text]).toEqual([201, body])
    }
    expect(served.runs).toBe(20)
  })

  one('a client that hangs up after the reply has left costs nothing', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const connection = await RawConnection.open(served.port)
    connection.socket.write(rawPost(key, '{}'))
    const first = await connection.reply()
    connection.socket.resetAndDestroy()
    expect((await served.send({ key })).text).toBe(first.body)
  })
})

async function completed({ once }: Served, key: string): Promise<void> {
  await waitUntil('the reply is stored', async () => {
    const { state } = await once.explain({ account: 'acct_1', operation: OPERATION, key })
    return state === 'completed'
  })
}

/** Whether the server read the request before it noticed the end or not: in the end there is one reply. */
async function answered(served: Served, key: string, body: string) {
  let reply = await served.send({ key, body })
  await waitUntil('it is not in progress', async () => {
    if (reply.status === 409) reply = await served.send({ key, body })
    return reply.status !== 409
  })
  return reply
}
