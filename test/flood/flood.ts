import { randomUUID } from 'node:crypto'
import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

export interface Answered {
  readonly status: number
  readonly type: string
  readonly retryAfter: string | null
  readonly text: string
  readonly afterMs: number
}

/** What became of all requests. */
export interface Flooded {
  readonly answers: readonly Answered[]
  /** Connections that the server closed before an answer. */
  readonly closed: number
  /** Requests that were neither answered nor closed within their bound. */
  readonly unanswered: number
}

export interface FloodOptions {
  readonly port: number
  readonly connections: number
  /** No further request is sent once it is aborted. */
  readonly over: AbortSignal
  /** How long a request may be under way. */
  readonly answerMaxMs: number
  /** A pause of a connection between two requests: without one, refusals alone would take all of the machine. */
  readonly pauseMs?: number
  ask(nth: number): Ask
}

export interface Ask {
  readonly path: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

type End = Answered | 'closed' | 'unanswered'

/**
 * Keeps many connections busy until it is told to stop, and tells what became of every single request.
 *
 * @example
 * const { answers } = await flood({ port, connections: 30, over: AbortSignal.timeout(2_000), answerMaxMs: 5_000, ask })
 */
export async function flood(options: FloodOptions): Promise<Flooded> {
  const { port, connections, over, answerMaxMs, pauseMs = 20, ask } = options
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const ends: End[] = []
  let asked = 0
  const one = async () => {
    while (!over.aborted) {
      asked += 1
      ends.push(await send(port, ask(asked), answerMaxMs, agent))
      await pause(pauseMs)
    }
  }
  try {
    await Promise.all(Array.from({ length: connections }, one))
  } finally {
    agent.destroy()
  }
  return {
    answers: ends.filter((end): end is Answered => typeof end === 'object'),
    closed: ends.filter((end) => end === 'closed').length,
    unanswered: ends.filter((end) => end === 'unanswered').length,
  }
}

/** One request, brought to its end in bounded time. */
export function send(port: number, asked: Ask, answerMaxMs: number, agent?: Agent): Promise<End> {
  const { path, method = 'POST', headers = {}, body } = asked
  const begun = performance.now()
  const options: RequestOptions = { host: '127.0.0.1', port, path, method, ...(agent && { agent }) }
  return new Promise((resolve) => {
    const sent = request({
      ...options,
      headers: {
        ...(method !== 'GET' && { 'idempotency-key': randomUUID(), 'content-type': 'application/json' }),
        ...(body !== undefined && { 'content-length': `${Buffer.byteLength(body)}` }),
        ...headers,
      },
    })
    const timer = setTimeout(() => {
      resolve('unanswered')
      sent.destroy()
    }, answerMaxMs)
    const end = (what: End) => {
      clearTimeout(timer)
      resolve(what)
    }
    sent.on('error', () => end('closed'))
    sent.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk
      })
      response.on('error', () => end('closed'))
      response.on('end', () => end(answeredBy(response, text, performance.now() - begun)))
    })
    sent.end(body)
  })
}

function answeredBy({ statusCode, headers }: IncomingMessage, text: string, afterMs: number): Answered {
  const { 'content-type': type = '', 'retry-after': retryAfter = null } = headers
  return { status: statusCode!, type, retryAfter, text, afterMs }
}
