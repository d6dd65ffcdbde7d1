import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { expect } from 'vitest'
import { type Bench, topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import type { Result } from '../under-test.ts'

const MEBIBYTE = 1_048_576

export const bodies = topic('Bodies come back byte for byte', (one) => {
  const replayed = async (bench: Bench, result: () => Result) => {
    const served = await bench.serve({ handle: result })
    const { first, again } = await served.twice()
    expectReplay(first, again)
    expect(served.runs).toBe(1)
    return first
  }

  one('JSON, with its own type', async (bench) => {
    const first = await replayed(bench, () => ({ do: 'json', status: 201, value: { at: performance.now() } }))
    expect(first.status).toBe(201)
    expect(first.headers['content-type']).toMatch(/^application\/json/)
    expect(first.json().at).toBeGreaterThan(0)
  })

  one('JSON that is an error stays JSON', async (bench) => {
    const first = await replayed(bench, () => ({ do: 'json', status: 422, value: { error: 'too poor' } }))
    expect(first.json()).toEqual({ error: 'too poor' })
  })

  one('text beyond ASCII', async (bench) => {
    const first = await replayed(bench, () => ({ do: 'text', status: 200, text: 'für 5 € \u{1F4B6}' }))
    expect(first.text).toBe('für 5 € \u{1F4B6}')
    expect(first.headers['content-type']).toMatch(/^text\/plain/)
  })

  one('an empty 204', async (bench) => {
    const first = await replayed(bench, () => ({ do: 'empty', status: 204 }))
    expect(first.status).toBe(204)
    expect(first.body.length).toBe(0)
    expect(first.headers['content-length']).toBeUndefined()
  })

  one('an end without a word', async (bench) => {
    const first = await replayed(bench, () => ({ do: 'end' }))
    expect(first.body.length).toBe(0)
  })

  one('an empty text is a reply too', async (bench) => {
    await replayed(bench, () => ({ do: 'text', status: 200, text: '' }))
  })

  one('a redirect keeps its Location', async (bench) => {
    const first = await replayed(bench, () => ({ do: 'redirect', status: 301, location: '/things/7' }))
    expect(first).toMatchObject({ status: 301, headers: { location: '/things/7' } })
  })

  one('bytes that are no text', async (bench) => {
    const bytes = Buffer.concat([Buffer.from([0, 255, 254, 128, 10, 13]), randomBytes(500)])
    const first = await replayed(bench, () => ({ do: 'binary', status: 200, type: 'image/png', bytes }))
    expect(Buffer.compare(first.body, bytes)).toBe(0)
    expect(first.headers['content-type']).toMatch(/^image\/png/)
  })

  one('chunks, of text and of bytes', async (bench) => {
    const chunks = ['{"a":', Buffer.from('"é'), Buffer.from([0x22]), '}']
    const first = await replayed(bench, () => ({
      do: 'chunks',
      status: 200,
      type: 'application/json',
      chunks,
    }))
    expect(first.json()).toEqual({ a: 'é' })
  })

  one(
    'what was held back is not sent in chunks',
    async (bench) => {
      const first = await replayed(bench, () => ({
        do: 'chunks',
        status: 200,
        type: 'text/plain',
        chunks: ['a', 'b'],
      }))
      expect(first.headers).toMatchObject({ 'content-length': '2' })
      expect(first.headers['transfer-encoding']).toBeUndefined()
    },
    ['node_response'],
  )

  one('a stream that is piped, with more than fits at once', async (bench) => {
    const parts = Array.from({ length: 40 }, () => randomBytes(16_000))
    const first = await replayed(bench, () => ({
      do: 'stream',
      status: 200,
      type: 'application/octet-stream',
      stream: Readable.from(parts, { objectMode: false, highWaterMark: 16_000 }),
    }))
    expect(Buffer.compare(first.body, Buffer.concat(parts))).toBe(0)
  })

  one('one MiB, as much as is kept', async (bench) => {
    const bytes = randomBytes(MEBIBYTE)
    const type = 'application/octet-stream'
    const first = await replayed(bench, () => ({ do: 'binary', status: 200, type, bytes }))
    expect(first.body.length).toBe(MEBIBYTE)
  })

  one(
    'one byte more: it is sent, and its replay is told to be lost, and nothing runs again',
    async (bench) => {
      const bytes = randomBytes(MEBIBYTE + 1)
      const type = 'application/octet-stream'
      const served = await bench.serve({ handle: () => ({ do: 'binary', status: 201, type, bytes }) })
      const { first, again } = await served.twice()
      expect(Buffer.compare(first.body, bytes)).toBe(0)
      expectProblem(again, 'reply_not_kept')
      expect(again.json().detail).toContain('201')
      expect(served.runs).toBe(1)
    },
  )

  one('a limit of the route', async (bench) => {
    const served = await bench.serve({
      policy: { replySizeMaxBytes: 10 },
      handle: ({ query }) => ({ do: 'text', status: 200, text: 'x'.repeat(Number(query.length)) }),
    })
    const fits = await served.twice({ path: '/things?length=10' })
    expectReplay(fits.first, fits.again)
    const large = await served.twice({ path: '/things?length=11' })
    expectProblem(large.again, 'reply_not_kept')
    expect(served.runs).toBe(2)
  })
})
