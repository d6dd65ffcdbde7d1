import { createServer, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { failureOf } from '../../src/record/failure.ts'
import { post } from '../../src/webhooks/post.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

async function openPort(answer: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    answer(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as { port: number }).port
}

const send = (port: number, addresses = ['127.0.0.1'], timeoutMs = 10_000) =>
  post(
    { url: `http://shop.example:${port}/`, headers: {}, body: Buffer.from('{}'), timeoutMs },
    { allowPrivate: true, resolve: async () => addresses },
  ).catch(failureOf)

/** As long as anybody takes it. */
const endless = (begin: string, piece: string) => (socket: Socket) => {
  const more = () => void (socket.destroyed || socket.write(piece, more))
  socket.write(begin, more)
}

const ANSWERS: Record<string, readonly [(socket: Socket) => void, unknown]> = {
  'interim answers without end': [
    endless('', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'),
    { code: 'no_answer', message: 'It sent only interim answers.' },
  ],
  'headers without end': [
    endless('HTTP/1.1 200 OK\r\n', `X-A: ${'a'.repeat(1_000)}\r\n`),
    { code: 'HPE_HEADER_OVERFLOW' },
  ],
  'a few interim answers': [
    (socket) => socket.end(`${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(3)}HTTP/1.1 204 No Content\r\n\r\n`),
    204,
  ],
  'another protocol': [
    (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'),
    { code: 'no_answer' },
  ],
  'no protocol at all': [(socket) => socket.end('<html>'), { code: 'HPE_INVALID_CONSTANT' }],
}

it.each(Object.entries(ANSWERS))('%s', async (_, [answer, expected]) => {
  const came = await send(await openPort(answer))
  if (typeof expected === 'object') expect(came).toMatchObject(expected as object)
  else expect(came).toBe(expected)
})

it('an answer that trickles in is given up in time', async () => {
  const trickle = (socket: Socket) => {
    const timer = setInterval(() => void (socket.destroyed || socket.write('a')), 20)
    socket.write('HTTP/1.1 200 OK\r\nX: ')
    socket.on('close', () => clearInterval(timer))
  }
  expect(await send(await openPort(trickle), undefined, 200)).toMatchObject({ code: 'timeout' })
})

it('where no address of several can be reached, the failure says why', async () => {
  const failure = await send(1, ['127.0.0.1', '127.0.0.2'])
  expect(failure).toEqual({ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 127.0.0.1:1' })
})
