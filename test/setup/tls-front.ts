import { connect, createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Certificate } from './certificate.ts'
import { cleanUpLater } from './clean-up.ts'

/**
 * Speaks TLS in front of a PostgreSQL that speaks none: takes the driver's wish for it, and carries the rest. Gives its port.
 *
 * @example
 * const port = await startTlsFront(new URL(database.url), certificate)
 */
export async function startTlsFront(target: URL, { cert, key }: Certificate): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.once('data', (asked) => {
      // SSLRequest: a length of eight, and a number that stands for no version of the protocol.
      if (asked.length !== 8 || asked.readInt32BE(4) !== 80_877_103) return socket.destroy()
      socket.write('S')
      const secure = new TLSSocket(socket, { isServer: true, cert, key })
      const behind = connect(Number(target.port), target.hostname)
      const end = () => {
        secure.destroy()
        behind.destroy()
      }
      secure.on('error', end).on('close', end).pipe(behind)
      behind.on('error', end).on('close', end).pipe(secure)
      sockets.add(behind)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUpLater(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as { port: number }).port
}
