/**
 * Everything that a request can have wrong. Each is told what it is as a problem, without a word of what is behind it; its key is
 * still free, nothing is charged, and the process goes on. The tables are in malformed/.
 */
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { amounts, members, metadata } from './malformed/amounts.ts'
import { bodies } from './malformed/bodies.ts'
import { contentTypes, credentials, messages } from './malformed/headers.ts'
import { keys } from './malformed/keys.ts'
import { paths } from './malformed/paths.ts'
import { processor } from './malformed/processor.ts'
import { operators, queries } from './malformed/queries.ts'
import { expectRefused, openSite, type Row, served, TEA, wire } from './malformed/site.ts'
import { writes } from './malformed/writes.ts'
import { sendRaw } from './raw.ts'

const site = await openSite()
const { shop, gateway, other } = site
const named = (rows: readonly Row[]) => rows.map((row) => [row[0], row] as const)
const isRefused = async (_: string, row: Row) => expectRefused(site, row)

describe('is refused', () => {
  it.concurrent.each(named(keys(site)))('a key that %s', isRefused)
  it.concurrent.each(named(credentials(site)))('as credential: %s', isRefused)
  it.concurrent.each(named(contentTypes(site)))('as content type: %s', isRefused)
  it.concurrent.each(named(messages(site)))('as message: %s', isRefused)
  it.concurrent.each(named(bodies))('as body: %s', isRefused)
  it.concurrent.each(named(amounts(site)))('as amount: %s', isRefused)
  it.concurrent.each(named(members))('as member of a payment: %s', isRefused)
  it.concurrent.each(named(metadata))('as metadata: %s', isRefused)
  it.concurrent.each(named(paths(site)))('as path: %s', isRefused)
  it.concurrent.each(named(queries(site)))('as query: %s', isRefused)
  it.concurrent.each(named(writes(site)))('as write: %s', isRefused)
  it.concurrent.each(named(processor))('as webhook of the processor: %s', isRefused)
  it.concurrent.each(named(operators(site)))('from operators: %s', isRefused)
})

describe('a payment', () => {
  const paid = () => {
    served['payments.create'] = (served['payments.create'] ?? 0) + 1
  }

  it.each([
    ['bytes that are no request', 'nonsense', 'close'],
    ['bytes that are no request, on a connection that stays', 'nonsense\r\n\r\n', 'keep-alive'],
    ['half of a request', 'POST /v1/payments HTTP/1.1\r\nContent-Length: x', 'keep-alive'],
  ])('with %s behind it is answered as what it is', async (_, behind, connection) => {
    const key = `bytes-behind-${behind.length}-${connection}`
    const raw = wire(site, { headers: { Connection: connection, 'Idempotency-Key': key } })
    // Told that it was no request, a client would take the payment for one that never began.
    const { status, body } = await sendRaw(shop.url, raw + behind)
    expect([status, body.status]).toEqual([201, 'succeeded'])
    paid()
  })

  it('that does not come whole in time is told so, and may be sent again', async () => {
    const { server } = shop.api
    const connected = once(server, 'connection')
    const answer = sendRaw(shop.url, wire(site, { headers: { 'Content-Length': '5000' } }))
    const [socket] = await connected
    // As Node does half a minute later.
    server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
    const { status, body } = await answer
    expect([status, body.code, body.retryable]).toEqual([408, 'request_timeout', true])
  })

  it('in a mode without a processor is refused, and claims no key', async () => {
    const { apiKey, account } = await shop.addCaller('live')
    const key = 'live-without-a-processor'
    const { status, body } = await shop.post('/v1/payments', TEA, { apiKey, key })
    expect([status, body.code]).toEqual([403, 'mode_unavailable'])
    expect(await shop.service.once.explain({ account, operation: 'payments.create', key })).toMatchObject({
      state: 'none',
    })
  })

  it('is still served by the same process after all of this', async () => {
    const { status, body } = await shop.post('/v1/payments', TEA)
    expect([status, body.status]).toEqual([201, 'succeeded'])
    paid()
  })
})

describe('what was refused', () => {
  /** Four of them were there before, two of which are held. */
  const before = 4
  const paid = () => before + served['payments.create']!

  it('has left no record of a key', async () => {
    const { rows } = await shop.service.pool.query(
      `SELECT operation, count(*)::int FROM onlyonce.records
       WHERE account = $1 AND operation NOT LIKE 'webhook%' GROUP BY operation`,
      [shop.account],
    )
    const expected = Object.entries(served).filter(([operation]) => !operation.startsWith('webhook'))
    expect(Object.fromEntries(rows.map(({ operation, count }) => [operation, count]))).toEqual({
      ...Object.fromEntries(expected),
      'payments.create': paid(),
    })
  })

  it('has made no payment, and no endpoint', async () => {
    const { rows } = await shop.service.pool.query(
      'SELECT account, count(*)::int FROM payments.payments GROUP BY account',
    )
    expect(Object.fromEntries(rows.map(({ account, count }) => [account, count]))).toEqual({
      [shop.account]: paid(),
      [other.account]: 1,
    })
    const { body } = await shop.ask('/v1/webhook-endpoints')
    expect(body.data).toHaveLength(1)
    expect(body.data[0]).toMatchObject({
      id: site.endpoint,
      url: 'https://shop.example/hooks',
      state: 'enabled',
    })
  })

  it('has moved nothing at the processor', async () => {
    const { movements } = await gateway.state()
    expect(movements).toEqual({
      authorization: 2,
      capture: paid() - 2 + 1 + served['payments.capture']!,
      refund: served['refunds.create'],
      void: 0,
      decline: 0,
    })
  })
})
