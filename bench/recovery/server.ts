/** A server that is told by its parent when it is down: then nothing listens on its port, as after a crash or in a deploy. */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:http'

/**
 * Below the ports that systems give to connections by themselves. A client that tries a closed port among those may be connected to itself, and
 * hold the port when the server comes back.
 */
const PORTS = [15_000, 30_000] as const
const TRIES_MAX = 10

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(201, { 'content-type': 'application/json' }).end('{"id":"pay_1"}')
  })
})

async function listen(port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', 4_096, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

async function listenAnywhere(): Promise<number> {
  for (let tries = 1; ; tries += 1) {
    const port = randomInt(...PORTS)
    try {
      await listen(port)
      return port
    } catch (error) {
      if (tries === TRIES_MAX) throw error
    }
  }
}

const port = await listenAnywhere()
process.send!({ port })
process.on('message', async (told: 'down' | 'up') => {
  if (told === 'up') await listen(port)
  else {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }
  process.send!({ is: told })
})
// It ends with its parent, however that ends.
process.on('disconnect', () => process.exit(0))
