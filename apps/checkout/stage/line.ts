import { request as ask, type IncomingMessage, type ServerResponse } from 'node:http'

/** What becomes of one request on its way. */
export interface Passage {
  /** Where the server listens; null where it is dead. */
  readonly target: string | null
  /** The path at the server. */
  readonly path: string
  /** Whether its answer is lost: the server does its work and answers, and the page hears nothing. */
  readonly loseAnswer: boolean
}

/** Headers between two neighbours, which are not passed on. */
const OF_THE_CONNECTION = new Set(['connection', 'keep-alive', 'transfer-encoding', 'host'])

/**
 * Passes a request on to a payment server, and its answer back, byte by byte. A server that dies is told as load balancers tell it: with 502.
 * Without an answer Chromium would send the request again by itself, and the page would see less than what happened. A page that hangs up
 * does not reach the server: its work goes on.
 */
export function passOn(request: IncomingMessage, response: ServerResponse, passage: Passage): void {
  const { target, path, loseAnswer } = passage
  const tellDead = () => {
    if (response.headersSent) request.socket.destroy()
    else response.writeHead(502, { 'content-type': 'text/plain' }).end('The server has died.')
  }
  if (target === null) {
    tellDead()
    return
  }
  const outgoing = ask(new URL(path, target), {
    method: request.method,
    headers: kept(request.headers),
    agent: false,
  })
  outgoing.on('error', tellDead)
  outgoing.on('response', (answer) => {
    answer.on('error', tellDead)
    if (loseAnswer) return void answer.resume()
    response.writeHead(answer.statusCode ?? 502, kept(answer.headers))
    answer.pipe(response)
  })
  request.pipe(outgoing)
}

function kept(headers: IncomingMessage['headers']) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OF_THE_CONNECTION.has(name)))
}
