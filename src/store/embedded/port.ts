import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { OnlyonceError } from '../../core/errors.ts'
import { EMBEDDED_LIMITS } from './limits.ts'

/**
 * Below every system's range of ephemeral ports (Linux from 32768, macOS and Windows from 49152). A port out of
 * that range, as `listen(0)` gives, can be lost while the server restarts: an outgoing connection takes it, and
 * a client that knocks at the closed port may even connect to itself and so occupy it.
 */
const PORT_FIRST = 15_000
const PORT_LAST = 32_000

/**
 * A port on loopback without a listener. Another process may take it before the server does: callers try again.
 *
 * @example
 * const port = await pickPort()
 */
export async function pickPort(): Promise<number> {
  for (let tries = 0; tries < EMBEDDED_LIMITS.portTriesMax; tries++) {
    const port = randomInt(PORT_FIRST, PORT_LAST)
    if (await isFree(port)) return port
  }
  throw new OnlyonceError('store_unavailable', { detail: 'No free port was found for the embedded server.' })
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)))
  })
}
