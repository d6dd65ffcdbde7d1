import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { makeId } from '../ids.ts'
import { PROBLEM_TYPE, PROBLEMS, type ProblemCode, problemBody, Refused } from '../problems.ts'

/** The answers that are not given yet, by connection. */
const owed = new WeakMap<Socket, Set<ServerResponse>>()

/** Notes that this connection is owed an answer. */
export function noteRequest({ raw }: FastifyRequest, reply: FastifyReply): void {
  const responses = owed.get(raw.socket) ?? new Set()
  owed.set(raw.socket, responses.add(reply.raw))
  reply.raw.once('close', () => responses.delete(reply.raw))
}

/** What is no request at all: Fastify never sees it. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  // A request that came whole is at work, and what came behind it is wrong. An answer now would be taken for that request's.
  const atWork = [...(owed.get(socket) ?? [])].filter(({ req }) => req.complete)
  if (atWork.length > 0) {
    atWork.at(-1)!.once('finish', () => socket.end())
    return
  }
  const known = CLIENT_ERRORS[error.code ?? '']
  const { status, headers, body } =
    known === undefined ? problemOf('invalid_request', 'This is not HTTP as we know it.') : problemOf(known)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
}

const CLIENT_ERRORS: Readonly<Record<string, ProblemCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
}

/** Node would answer these by itself, without a word. */
export function answerExpectations(server: Server): void {
  server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) => {
    const { status, headers, body } = problemOf('expectation_failed')
    response.writeHead(status, headers).end(body)
  })
}

/** Headers of which Node keeps the first and drops the rest, where somebody before us may have read another one. */
const SINGLE = ['host', 'authorization', 'content-type'] as const

/** Whom a request is for, who sends it and what it holds is said once, in a protocol that is spoken here. */
export function refuseAmbiguous({ raw }: FastifyRequest): void {
  // Node's parser also takes a request for HTTP/2.0, in the form of HTTP/1, and one that names no protocol.
  if (raw.httpVersion !== '1.1' && raw.httpVersion !== '1.0') {
    throw new Refused('invalid_request', { detail: 'Speak HTTP/1.1.' })
  }
  const repeated = SINGLE.find((name) => (raw.headersDistinct[name]?.length ?? 0) > 1)
  if (repeated !== undefined) {
    throw new Refused('invalid_request', { detail: `The header ${repeated} was sent more than once.` })
  }
  if (raw.headers.host === undefined && raw.httpVersion !== '1.0') {
    throw new Refused('invalid_request', { detail: 'The header host is missing.' })
  }
}

function problemOf(code: ProblemCode, detail?: string) {
  const requestId = makeId('req')
  const body = JSON.stringify({ ...problemBody(code, { ...(detail && { detail }) }), request_id: requestId })
  const headers = {
    'Content-Type': PROBLEM_TYPE,
    'Content-Length': `${Buffer.byteLength(body)}`,
    'Cache-Control': 'no-store',
    'Request-Id': requestId,
    Connection: 'close',
  }
  return { status: PROBLEMS[code].status, headers, body }
}
