import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readRule } from './faults.ts'
import { bodyOf, Failure, invalidRequest } from './http/failure.ts'
import type { GatewayServer } from './server.ts'

interface ControlRequest {
  readonly incoming: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: string
  readonly body: string
}

/** A century: nobody means more, and sums of it stay exact. */
const ADVANCE_MAX_MS = 100 * 365 * 24 * 60 * 60 * 1_000

/** Commands to the sandbox itself, in JSON. They want a token of their own: they put clocks forward and show what everybody paid. */
export class Control {
  readonly #server: GatewayServer
  readonly #token: Buffer

  constructor(server: GatewayServer, token: string) {
    this.#server = server
    this.#token = digest(`Bearer ${token}`)
  }

  async serve(request: ControlRequest): Promise<void> {
    const { response } = request
    try {
      // Digests are of one length, whatever was sent.
      const given = digest(request.incoming.headers.authorization ?? '')
      if (!timingSafeEqual(given, this.#token)) throw new Failure(401, UNKNOWN)
      const told = await this.#obey(request)
      send(response, 200, JSON.stringify(told))
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      send(response, error.status, bodyOf(error.details))
    }
  }

  async #obey({ incoming, path, query, body }: ControlRequest): Promise<unknown> {
    const { processor, faults, seen } = this.#server
    switch (`${incoming.method} ${path.slice('/_sandbox/'.length)}`) {
      case 'GET state':
        return this.#server.state()
      case 'GET journal': {
        const entries = processor.books.effects.map(({ entry }) => entry)
        await processor.settled()
        return entries
      }
      case 'GET requests':
        return seen.of(new URLSearchParams(query).get('key') ?? '')
      case 'GET faults':
        return faults.rules
      case 'POST faults': {
        const rules = readJson(body)
        for (const rule of (Array.isArray(rules) ? rules : [rules]).map(readRule)) faults.add(rule)
        return faults.rules
      }
      case 'DELETE faults':
        faults.clear()
        return faults.rules
      case 'POST release':
        this.#server.release(keyOf(readJson(body)))
        return this.#server.state()
      case 'POST clock':
        processor.clock.advance(advanceOf(readJson(body)))
        processor.expire()
        await processor.settled()
        return this.#server.state()
      default:
        throw new Failure(404, { type: 'invalid_request_error', message: 'There is no such command.' })
    }
  }
}

const UNKNOWN = {
  type: 'invalid_request_error',
  message: 'Send the control token: Authorization: Bearer <token>. It is in the folder of the sandbox.',
} as const

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function advanceOf(body: unknown): number {
  const { advance_ms: advanceMs } = body as { advance_ms?: unknown }
  if (Number.isSafeInteger(advanceMs) && Number(advanceMs) >= 0 && Number(advanceMs) <= ADVANCE_MAX_MS) {
    return Number(advanceMs)
  }
  throw invalidRequest('advance_ms has to be a whole number of milliseconds, from zero on.')
}

function keyOf(body: unknown): string | null {
  const { key } = body as { key?: unknown }
  if (key === undefined) return null
  if (typeof key === 'string') return key
  throw invalidRequest('key has to be a text; without one, all are released.')
}

function readJson(body: string): object {
  try {
    const value: unknown = JSON.parse(body === '' ? '{}' : body)
    if (typeof value === 'object' && value !== null) return value
  } catch {}
  throw invalidRequest('The body is no JSON object.')
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}
