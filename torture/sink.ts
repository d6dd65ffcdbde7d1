import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from 'onlyonce/testing'
import type { Delivery } from './judge/history.ts'

/** Receives the webhooks of all accounts, each at a path of its own, and notes what it has accepted. */
export interface Sink {
  readonly url: string
  readonly deliveries: Delivery[]
  /** Refuses this share of webhooks until the function that it gives is called. */
  refuse(rate: number): () => void
  close(): Promise<void>
}

const REFUSALS = [500, 503, 429, 404] as const

export async function openSink(random: Random): Promise<Sink> {
  const deliveries: Delivery[] = []
  const refusing = new Set<{ readonly rate: number }>()
  const server = createServer((request, response) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('error', () => {})
    request.on('end', () => {
      const refused = [...refusing].some(({ rate }) => random.chance(rate))
      const id = String(request.headers['webhook-id'] ?? '')
      if (!refused)
        deliveries.push({ path: request.url ?? '', id, body: Buffer.concat(parts).toString('utf8') })
      response.writeHead(refused ? random.pick(REFUSALS) : 204).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    deliveries,
    refuse(rate) {
      const one = { rate }
      refusing.add(one)
      return () => void refusing.delete(one)
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
