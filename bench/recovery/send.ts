import { Agent, type IncomingMessage, request } from 'node:http'

/**
 * A fetch on node:http. Where connections are refused, it takes about half of the processor time that the global one of Node.js 20 takes: a
 * thousand callers share one process here, and its load must not hide theirs.
 */
export function makeFetch(): (input: string | Request, init: RequestInit) => Promise<Response> {
  const agent = new Agent({ keepAlive: true })
  return (input, init) =>
    new Promise((resolve, reject) => {
      const { method = 'GET', signal } = init
      const headers = Object.fromEntries(new Headers(init.headers))
      const outgoing = request(String(input), { method, headers, agent }, (answer) =>
        read(answer).then(resolve, reject),
      )
      outgoing.on('error', (cause) => reject(Object.assign(new TypeError('fetch failed'), { cause })))
      signal?.addEventListener('abort', () => outgoing.destroy())
      outgoing.end(init.body)
    })
}

async function read(answer: IncomingMessage): Promise<Response> {
  const parts: Buffer[] = []
  for await (const part of answer) parts.push(part as Buffer)
  const headers = { 'content-type': answer.headers['content-type'] ?? '' }
  return new Response(Buffer.concat(parts), { status: answer.statusCode ?? 500, headers })
}
