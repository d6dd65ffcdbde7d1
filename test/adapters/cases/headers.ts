import { expect } from 'vitest'
import { topic } from '../case.ts'
import { expectProblem, expectReplay } from '../expectations.ts'
import type { HeaderList, Result } from '../under-test.ts'

/** They describe the body, or tell where the result is. */
const KEPT: HeaderList = [
  ['cache-control', 'private'],
  ['content-disposition', 'attachment; filename="a.json"'],
  ['content-language', 'de'],
  ['content-location', '/things/7'],
  ['etag', '"v7"'],
  ['expires', 'Thu, 01 Jan 2099 00:00:00 GMT'],
  ['last-modified', 'Thu, 01 Jan 2015 00:00:00 GMT'],
  ['link', '</a>; rel="a", </b>; rel="b"'],
  ['location', '/things/7'],
  ['vary', 'Accept'],
]

/** They belong to one connection, one client or one moment. */
const DROPPED: HeaderList = [
  ['set-cookie', 'session=1; Path=/'],
  ['set-cookie', 'theme=dark'],
  ['ratelimit-remaining', '3'],
  ['x-ratelimit-limit', '10'],
  ['x-rate-limit-reset', '7'],
  ['traceparent', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'],
  ['tracestate', 'a=b'],
  ['server-timing', 'db;dur=3'],
  ['x-request-id', 'r-1'],
  ['x-custom', 'mine'],
]

export const headers = topic('Headers', (one) => {
  const ok = (list: HeaderList): Result => ({ do: 'json', status: 200, value: { ok: true }, headers: list })

  one('that describe the reply are replayed', async (bench) => {
    const served = await bench.serve({ handle: () => ok(KEPT) })
    const { first, again } = await served.twice()
    expectReplay(first, again)
    for (const [name, value] of KEPT) expect(again.headers).toMatchObject({ [name]: value })
  })

  one('of one connection, one client or one moment are sent and never replayed', async (bench) => {
    const served = await bench.serve({ handle: () => ok(DROPPED) })
    const { first, again } = await served.twice()
    expect(first.headers['set-cookie']).toEqual(['session=1; Path=/', 'theme=dark'])
    for (const [name] of DROPPED) {
      expect([name, first.headers[name]]).not.toEqual([name, undefined])
      expect([name, again.headers[name]]).toEqual([name, undefined])
    }
    expectReplay(first, again)
  })

  one('that the route names are replayed too', async (bench) => {
    const policy = { replyHeaders: ['X-Custom'] }
    const served = await bench.serve({ policy, handle: () => ok(DROPPED) })
    const { again } = await served.twice()
    expect(again.headers['x-custom']).toBe('mine')
  })

  one('can be set early, long before the body', async (bench) => {
    const served = await bench.serve({
      async handle({ setHeader }) {
        setHeader('location', '/things/8')
        setHeader('x-before', 'set')
        await new Promise((resolve) => setImmediate(resolve))
        return ok([['etag', '"late"']])
      },
    })
    const { first, again } = await served.twice()
    expect(first.headers).toMatchObject({ location: '/things/8', 'x-before': 'set', etag: '"late"' })
    expectReplay(first, again)
    expect(again.headers['x-before']).toBeUndefined()
  })

  one('that were set before the layer are on every answer', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const first = await served.send({ key })
    const again = await served.send({ key })
    const problem = await served.send({ key, body: { other: true } })
    expectReplay(first, again)
    expectProblem(problem, 'key_reused')
    for (const { headers: got } of [first, again, problem]) expect(got['x-early']).toBe('set')
  })

  one('tell the right length of every answer', async (bench) => {
    const served = await bench.serve()
    const key = crypto.randomUUID()
    const answers = [
      await served.send({ key }),
      await served.send({ key }),
      await served.send({ key, body: { other: 'é' } }),
    ]
    for (const { headers: got, body } of answers) expect(got['content-length']).toBe(`${body.length}`)
  })

  one('a date is that of the answer, and there is one', async (bench) => {
    const served = await bench.serve({ handle: () => ok([['date', 'Thu, 01 Jan 2015 00:00:00 GMT']]) })
    const { again } = await served.twice()
    expect(again.headers.date).toBeDefined()
    expect(again.headers.date).not.toMatch(/2015/)
  })
})
