import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Api } from './type.ts'

/** How often connections are looked at that have become idle since the drain began. */
const SWEEP_MS = 50

/**
 * Lets a drain end as soon as the last request is answered. A connection that is kept alive by its client would hold it up until
 * that client goes: answers say that they are the last on theirs, and connections without a request are closed. Node does not count
 * those as idle on which none has come yet.
 */
export function closeConnectionsWhenDone(app: Api): void {
  const fresh = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    fresh.add(socket)
    socket.once('close', () => fresh.delete(socket))
  })
  app.server.on('request', ({ socket }: IncomingMessage) => fresh.delete(socket))

  let sweep: NodeJS.Timeout | undefined
  app.addHook('preClose', async () => {
    sweep = setInterval(() => {
      app.server.closeIdleConnections()
      for (const socket of fresh) socket.destroy()
    }, SWEEP_MS)
  })
  app.addHook('onClose', async () => clearInterval(sweep))
  app.addHook('onSend', (_, reply, payload, done) => {
    if (sweep !== undefined) reply.header('connection', 'close')
    done(null, payload)
  })
}
