/** What fetch of Node.js does with real sockets: the unit tests only say what it would. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { Executed, idempotentFetch, NotExecuted, OutcomeUnknown } from '../../src/client/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

const QUICK = { initialDelayMs: 1, maxDelayMs: 2, attemptTimeoutMs: 300 }
const POST = { method: 'POST', body: '{}' }

async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

it('knows that nothing was sent where no connection came about', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  await new Promise((resolve) => server.close(resolve))
  const error = await idempotentFetch(QUICK)(url, POST).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(NotExecuted)
  expect(error).toMatchObject({ code: 'not_sent', attempts: { length: 3 } })
  const nowhere = await idempotentFetch(QUICK)('http://no-such-host.invalid/', POST).catch((thrown) => thrown)
  expect(nowhere).toMatchObject({ name: 'NotExecuted', code: 'not_sent' })
})

it('does not know it where the connection was reset, or nothing came back', async () => {
  const reset = await listen((request) => request.socket.resetAndDestroy())
  const error = await idempotentFetch(QUICK)(reset, POST).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(OutcomeUnknown)
  expect(error.code).toBe('no_answer')
  const silent = await listen(() => {})
  const late = await idempotentFetch(QUICK)(silent, { ...POST, maxRetries: 0 }).catch((thrown) => thrown)
  expect(late).toMatchObject({ name: 'OutcomeUnknown', code: 'timeout' })
})

it('knows from the head of an answer that it was done, and asks for the rest', async () => {
  let asked = 0
  const keys = new Set<unknown>()
  const url = await listen((request, response) => {
    keys.add(request.headers['idempotency-key'])
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': '11' })
    if (++asked % 3 === 0) response.end('{"id":"p1"}')
    else response.write('{"id":', () => request.socket.resetAndDestroy())
  })
  const pay = idempotentFetch(QUICK)
  expect(await (await pay(url, POST)).json()).toEqual({ id: 'p1' })
  expect(keys.size).toBe(1)
  const error = await pay(url, { ...POST, maxRetries: 1 }).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(Executed)
  expect(error.attempts[0]).toMatchObject({ status: 201, executed: 'yes' })
})

it('sends a form with its bytes each time, and a Request with its body', async () => {
  const bodies: string[] = []
  const url = await listen((request, response) => {
    let text = `${request.headers['content-type']} `
    request.setEncoding('utf8').on('data', (part) => {
      text += part
    })
    request.on('end', () => {
      bodies.push(text)
      response.writeHead(bodies.length % 2 === 1 ? 503 : 201).end()
    })
  })
  const pay = idempotentFetch(QUICK)
  const form = new FormData()
  form.set('file', new Blob(['text']), 'a.txt')
  await pay(url, { method: 'POST', body: form })
  expect(bodies[0]).toMatch(/^multipart\/form-data; boundary=.*text/s)
  expect(bodies[1]).toBe(bodies[0])
  await pay(new Request(url, { method: 'PUT', body: 'tea', headers: { 'content-type': 'text/x-tea' } }))
  expect(bodies.slice(2)).toEqual(['text/x-tea tea', 'text/x-tea tea'])
})
