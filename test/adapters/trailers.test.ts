import { randomUUID } from 'node:crypto'
import { createServer, request as openRequest } from 'node:http'
import { fastify } from 'fastify'
import { describe, expect, test } from 'vitest'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { idempotent as idempotentNode } from '../../src/http/adapters/node/index.ts'
import { openShop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { receive } from './client.ts'
import { listening } from './servers/listen.ts'

const account = () => 'acct_1'

/** Sends one key twice, and tells the trailers too. */
async function twice(port: number) {
  const headers = { 'idempotency-key': randomUUID(), te: 'trailers' }
  const send = () =>
    new Promise<{ text: string; replayed: unknown; trailers: unknown }>((resolve, reject) => {
      const request = openRequest({ port, host: '127.0.0.1', method: 'POST', path: '/things', headers })
      request.once('error', reject).once('response', async (response) => {
        const { text, headers } = await receive(response)
        resolve({ text, replayed: headers['idempotent-replayed'], trailers: response.trailers })
      })
      request.end()
    })
  return [await send(), await send()] as const
}

describe('trailers leave with the reply that they belong to, and are not replayed', () => {
  test('node:http', async () => {
    const options = { account, operation: 'things.create' }
    const layer = idempotentNode((await openShop()).open(), options, (_, response) => {
      response.setHeader('trailer', 'x-sum')
      response.write('some ')
      response.addTrailers({ 'x-sum': '42' })
      response.end('text')
    })
    const { port, close } = await listening(createServer(layer))
    cleanUpLater(close)
    const [first, again] = await twice(port)
    expect(first).toEqual({ text: 'some text', replayed: undefined, trailers: { 'x-sum': '42' } })
    expect(again).toEqual({ text: 'some text', replayed: 'true', trailers: {} })
  })

  test('Fastify', async () => {
    const app = fastify()
    await app.register(idempotency, { once: (await openShop()).open(), account })
    app.post('/things', { preHandler: idempotent() }, async (_, reply) => {
      reply.trailer('x-sum', (_reply, _payload, done) => done(null, '42'))
      return 'some text'
    })
    await app.ready()
    const { port, close } = await listening(app.server)
    cleanUpLater(close)
    const [first, again] = await twice(port)
    expect(first).toEqual({ text: 'some text', replayed: undefined, trailers: { 'x-sum': '42' } })
    expect(again).toEqual({ text: 'some text', replayed: 'true', trailers: {} })
  })
})
