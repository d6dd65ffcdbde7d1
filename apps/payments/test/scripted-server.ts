import { once } from 'node:events'
import net from 'node:net'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: URLSearchParams
}

/** What is done with a request: bytes are answered as they are. */
export type Script = (request: SeenRequest, socket: net.Socket) => string | undefined

export interface ScriptedServer {
  readonly port: number
  /** All requests, in the order in which they came. */
  readonly seen: SeenRequest[]
  readonly connections: () => number
  script: Script
}

/** A server that answers canned bytes: whatever a real one, or what stands before it, might send. */
export async function startScriptedServer(script: Script): Promise<ScriptedServer> {
  const sockets = new Set<net.Socket>()
  let connections = 0
  const server = net.createServer((socket) => {
    sockets.add(socket)
    connections += 1
    socket.on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      for (let taken = takeRequest(text); taken !== null; taken = takeRequest(text)) {
        text = taken.rest
        scripted.seen.push(taken.request)
        const bytes = scripted.script(taken.request, socket)
        if (bytes !== undefined) socket.write(bytes)
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUpLater(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as net.AddressInfo
  const scripted: ScriptedServer = { port, seen: [], connections: () => connections, script }
  return scripted
}

/** A whole answer. */
export function answer(
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const all = { 'Content-Type': 'application/json', 'Request-Id': 'req_1', ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${status} Answer\r\n${lines.join('')}Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
}

function takeRequest(text: string): { request: SeenRequest; rest: string } | null {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return null
  const [first, ...lines] = text.slice(0, end).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const length = Number(headers['content-length'] ?? 0)
  const body = text.slice(end + 4, end + 4 + length)
  if (body.length < length) return null
  const [method = '', path = ''] = first!.split(' ')
  return {
    request: { method, path, headers, body: new URLSearchParams(body) },
    rest: text.slice(end + 4 + length),
  }
}
