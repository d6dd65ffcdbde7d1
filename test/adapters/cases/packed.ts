import { randomUUID } from 'node:crypto'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import { topic } from '../case.ts'
import type { Sent } from '../client.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import type { RouteInput } from '../under-test.ts'

const echo = ({ body }: RouteInput) => ({ do: 'json', status: 200, value: { body: body ?? null } }) as const
const packed = (body: Buffer, encoding: string, type = 'application/json'): Sent => ({
  body,
  headers: { 'content-encoding': encoding, 'content-type': type },
})

/** A form as clients send it: with a boundary of its own each time. */
function form(parts: readonly (readonly [head: string, content: string])[], type = ''): Sent {
  const boundary = `----form${randomUUID()}`
  const written = parts.map(([head, content]) => `--${boundary}\r\n${head}\r\n\r\n${content}\r\n`)
  return {
    body: Buffer.from(`${written.join('')}--${boundary}--\r\n`),
    headers: { 'content-type': `multipart/form-data${type}; boundary=${boundary}` },
  }
}

const AMOUNT = ['Content-Disposition: form-data; name="amount"', '5'] as const
const RECEIPT = [
  'Content-Disposition: form-data; name="receipt"; filename="a.txt"\r\nContent-Type: text/plain',
  'five\r\neuros',
] as const

export const packedBodies = topic('Packed bodies, charsets and forms', (one) => {
  one('JSON in gzip, deflate and br is the JSON that it holds', async (bench) => {
    const served = await bench.serve({ handle: echo })
    const json = Buffer.from('{"amount":5,"to":"ä"}')
    for (const [encoding, bytes] of [
      ['gzip', gzipSync(json)],
      ['deflate', deflateSync(json)],
    ] as const) {
      const key = randomUUID()
      const first = await served.send({ key, ...packed(bytes, encoding) })
      expect([first.status, first.json().body]).toEqual([200, { amount: 5, to: 'ä' }])
      expectReplay(first, await served.send({ key, ...packed(bytes, encoding) }))
      expectReplay(first, await served.send({ key, body: '{ "to": "ä", "amount": 5 }' }))
      expectProblem(await served.send({ key, ...packed(gzipSync('{"amount":6}'), 'gzip') }), 'key_reused')
    }
    const key = randomUUID()
    await served.send({ key, body: json })
    const again = await served.send({ key, ...packed(brotliCompressSync(json), 'br') })
    // The parser of Express 4 does not know br, where it stands before the layer.
    if (again.status !== 415) expect(again.headers['idempotent-replayed']).toBe('true')
    expect(served.runs).toBe(3)
  })

  one('what is not what its encoding says is refused, and nothing runs', async (bench) => {
    const served = await bench.serve()
    const key = randomUUID()
    const cut = gzipSync(JSON.stringify({ text: 'x'.repeat(1_000) })).subarray(0, 20)
    for (const bytes of [Buffer.from('{"amount":5}'), cut]) {
      const refused = await served.send({ key, ...packed(bytes, 'gzip') })
      expect([400, 500].includes(refused.status)).toBe(true)
    }
    expect(served.runs).toBe(0)
    expect((await served.send({ key })).status).toBe(201)
  })

  one(
    'the layer refuses by itself: a broken gzip, an encoding that it does not know, and two of them',
    async (bench) => {
      const served = await bench.serve()
      expectProblem(await served.send(packed(Buffer.from('{"amount":5}'), 'gzip')), 'encoding_malformed')
      expectProblem(await served.send(packed(gzipSync('{}'), 'zstd')), 'encoding_unsupported')
      expectProblem(await served.send(packed(gzipSync(gzipSync('{}')), 'gzip, gzip')), 'encoding_unsupported')
      expect(served.runs).toBe(0)
    },
    ['layer_first'],
  )

  one(
    'a few bytes that hold more than the limit are refused before they are unpacked',
    async (bench) => {
      const served = await bench.serve()
      const bomb = gzipSync(Buffer.alloc(64 * 1_048_576, 0x20))
      expect(bomb.length).toBeLessThan(100_000)
      expectProblem(await served.send(packed(bomb, 'gzip')), 'body_too_large')
      expect(served.runs).toBe(0)
    },
    ['layer_first'],
  )

  one('JSON of another charset than UTF-8 is refused, and nothing runs', async (bench) => {
    const served = await bench.serve()
    for (const charset of ['utf-7', 'utf-16le', 'UTF-32', 'iso-8859-1', '"utf-16"', 'utf-8; charset=utf-7']) {
      const refused = await served.send({
        headers: { 'content-type': `application/json; charset=${charset}` },
      })
      expect([charset, [400, 415].includes(refused.status)]).toEqual([charset, true])
    }
    expect(served.runs).toBe(0)
    for (const charset of ['utf-8', 'UTF-8', '"utf-8"']) {
      const taken = await served.send({ headers: { 'content-type': `application/json; charset=${charset}` } })
      expect([charset, taken.status]).toEqual([charset, 201])
    }
  })

  one(
    'the layer refuses another charset by itself',
    async (bench) => {
      const served = await bench.serve()
      const headers = { 'content-type': 'application/json; charset=utf-7' }
      expectProblem(await served.send({ headers }), 'charset_unsupported')
    },
    ['layer_first'],
  )

  one('what counts by its bytes counts with its encoding', async (bench) => {
    const served = await bench.serve({ handle: () => ({ do: 'json', status: 201, value: {} }) })
    const key = randomUUID()
    const bytes = gzipSync('five euros')
    const first = await served.send({ key, ...packed(bytes, 'gzip', 'text/plain') })
    expectReplay(first, await served.send({ key, ...packed(bytes, 'gzip', 'text/plain') }))
    const headers = { 'content-type': 'text/plain' }
    expectProblem(await served.send({ key, body: 'five euros', headers }), 'key_reused')
    expectProblem(await served.send({ key, body: bytes, headers }), 'key_reused')
    expect(served.runs).toBe(1)
  })

  one('a form counts by its parts: a new boundary is the same request', async (bench) => {
    const served = await bench.serve()
    const key = randomUUID()
    const first = await served.send({ key, ...form([AMOUNT, RECEIPT]) })
    expect(first.status).toBe(201)
    expectReplay(first, await served.send({ key, ...form([AMOUNT, RECEIPT]) }))
    const [head, content] = RECEIPT
    for (const other of [
      form([RECEIPT, AMOUNT]),
      form([AMOUNT]),
      form([AMOUNT, RECEIPT, RECEIPT]),
      form([AMOUNT, [head, `${content}!`]]),
      form([AMOUNT, [head.replace('a.txt', 'b.txt'), content]]),
      form([AMOUNT, [head.replace('text/plain', 'text/html'), content]]),
      form([AMOUNT, [head.replace('"receipt"', '"amount"'), content]]),
      form([AMOUNT, RECEIPT], '; charset=utf-16'),
    ]) {
      expectProblem(await served.send({ key, ...other }), 'key_reused')
    }
    expect(served.runs).toBe(1)
  })

  one('a form that is malformed is refused, and nothing runs', async (bench) => {
    const served = await bench.serve()
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const part = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1'
    for (const body of [
      'amount=5',
      `${part}\r\n`,
      `before\r\n${part}\r\n--x--`,
      `${part}\r\n--x--after`,
      `${part}\r\n--x --`,
      `${part}--x--`,
      '--x\r\n\r\n1\r\n--x--',
    ]) {
      expectProblem(await served.send({ body, headers }), 'multipart_malformed')
    }
    expect(served.runs).toBe(0)
  })

  one('a route compares forms as they were sent, or takes nothing but forms', async (bench) => {
    const raw = { fingerprint: { body: 'raw' } } as const
    const only = { fingerprint: { body: 'multipart' } } as const
    const served = await bench.serve([
      { path: '/raw', policy: raw },
      { path: '/only', policy: only },
    ])
    const key = randomUUID()
    await served.send({ key, path: '/raw', ...form([AMOUNT]) })
    expectProblem(await served.send({ key, path: '/raw', ...form([AMOUNT]) }), 'key_reused')
    const { first, again } = await served.twice({ path: '/only', ...form([AMOUNT]) })
    expectReplay(first, again)
    expectProblem(await served.send({ path: '/only' }), 'body_not_multipart')
  })

  one('a limit of the route, and of the service', async (bench) => {
    const sent = (size: number) => ({ body: 'x'.repeat(size), headers: { 'content-type': 'text/plain' } })
    const served = await bench.serve(
      [{ path: '/small', policy: { bodySizeMaxBytes: 10 } }, { path: '/usual' }],
      {
        bodySizeMaxBytes: 20,
      },
    )
    expect((await served.send({ path: '/small', ...sent(10) })).status).toBe(201)
    expectProblem(await served.send({ path: '/small', ...sent(11) }), 'body_too_large')
    expect((await served.send({ path: '/usual', ...sent(20) })).status).toBe(201)
    expectProblem(await served.send({ path: '/usual', ...sent(21) }), 'body_too_large')
    expect(served.runs).toBe(2)
  })

  one('a limit of the route above the usual one', async (bench) => {
    const policy = { bodySizeMaxBytes: 4 * 1_048_576 }
    const served = await bench.serve({ policy })
    const large = [['Content-Disposition: form-data; name="file"', 'x'.repeat(50_000)]] as const
    const { first, again } = await served.twice(form(large))
    expectReplay(first, again)
  })
})
