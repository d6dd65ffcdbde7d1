import { randomUUID } from 'node:crypto'
import { Agent, type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http'
import { cleanUpLater } from '../setup/clean-up.ts'

export interface Sent {
  readonly method?: string
  readonly path?: string
  /** The Idempotency-Key as it is sent; null for none. */
  readonly key?: string | null
  /** Null for nobody. */
  readonly account?: string | null
  /** An object is sent as JSON; text and bytes as they are; null for none. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
}

export interface Received {
  readonly status: number
  readonly statusText: string
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** As they came over the wire: name, value, name, value. */
  readonly rawHeaders: readonly string[]
  readonly body: Buffer
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: a reply is looked into member by member.
  json(): any
}

/** A client that keeps its connections, as real ones do. Without a key of its own a request gets a new one. */
export class Client {
  readonly port: number
  readonly #agent: Agent

  constructor(port: number, socketsMax = 32) {
    this.port = port
    this.#agent = new Agent({ keepAlive: true, maxSockets: socketsMax })
    cleanUpLater(async () => this.#agent.destroy())
  }

  async send(sent: Sent = {}): Promise<Received> {
    return await new Promise((resolve, reject) => {
      const request = this.open(sent)
      request.once('error', reject)
      request.once('response', (response) => receive(response).then(resolve, reject))
      request.end(bytesOf(sent.body))
    })
  }

  /** A request whose body is still to be written, or that is to be given up. */
  open(sent: Sent): ClientRequest {
    const { method = 'POST', path = '/things', key = randomUUID(), account = 'acct_1', body = {} } = sent
    const bytes = bytesOf(body)
    const headers: Record<string, string | readonly string[]> = {}
    if (key !== null) headers['idempotency-key'] = key
    if (account !== null) headers['x-account'] = account
    if (bytes !== undefined) {
      headers['content-type'] = 'application/json'
      headers['content-length'] = `${bytes.length}`
    }
    return openRequest({
      agent: this.#agent,
      host: '127.0.0.1',
      port: this.port,
      method,
      path,
      headers: { ...headers, ...sent.headers } as Record<string, string>,
    })
  }
}

export async function receive(response: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const text = body.toString()
  return {
    status: response.statusCode!,
    statusText: response.statusMessage!,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    body,
    text,
    json: () => JSON.parse(text),
  }
}

function bytesOf(body: unknown): Buffer | undefined {
  if (body === null) return undefined
  if (Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
}
