import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, it } from 'vitest'
import { resetSocket } from './socket.ts'

it('closes a socket whose end is still under way', async () => {
  const server = createServer((peer) => peer.on('error', () => {}).pause()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  const closed = once(socket, 'close')
  socket.end()
  // Node.js asks for the shutdown in this turn of the event loop, and it is done in the next one.
  await new Promise<void>((resolve) => process.nextTick(resolve))
  expect(socket.writableFinished).toBe(false)
  resetSocket(socket)
  await closed
  expect(socket.destroyed).toBe(true)
  server.close()
})
