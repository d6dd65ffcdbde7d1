import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Listening } from '../under-test.ts'

/** Waits until a server listens on a port of the system's choice. */
export async function listening(server: Server): Promise<Listening> {
  if (!server.listening) {
    server.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
  }
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
