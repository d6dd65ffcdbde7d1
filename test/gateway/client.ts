import { Agent, type IncomingMessage, request } from 'node:http'
import { notExecuted } from '../../src/core/errors.ts'
import type { ChargeRequest, ChargeResult, Lookup, RefundRequest, RefundResult } from './wire.ts'

export { type Gateway, startGateway } from './process.ts'

export interface CallOptions {
  readonly key: string
  readonly signal?: AbortSignal
}

/** What a service knows of the gateway: it cannot see inside. */
export interface GatewayClient {
  charge(charge: ChargeRequest, options: CallOptions): Promise<ChargeResult>
  refund(refund: RefundRequest, options: CallOptions): Promise<RefundResult>
  findByKey(key: string, options?: { readonly signal?: AbortSignal }): Promise<Lookup>
  /** Closes idle connections. */
  close(): void
}

/**
 * A client that tells three outcomes apart: a result, declines among them; `notExecuted()` where it is sure that nothing
 * happened; and any other error, after which nobody knows.
 *
 * With node:http and connections that are kept: measured with 64 callers, a call takes 85 to 115 µs of the processor, and 334 to
 * 561 µs with fetch, which matters to a benchmark that shares two cores with the gateway.
 *
 * @example
 * const gateway = gatewayClient(url)
 * const charge = await gateway.charge({ amount: 4200, reference: 'order_1' }, { key, signal })
 */
export function gatewayClient(url: string): GatewayClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 })
  const order = async <T>(path: string, body: object, { key, signal }: CallOptions): Promise<T> => {
    const { status, text } = await send(agent, new URL(path, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(body),
      signal,
    })
    if (status === 201 || status === 402) return JSON.parse(text) as T
    const error = new Error(`The gateway answered ${status}: ${text}`)
    throw status === 429 ? notExecuted(error) : error
  }
  return {
    charge: (charge, options) => order('/charges', charge, options),
    refund: (refund, options) => order('/refunds', refund, options),
    async findByKey(key, { signal } = {}) {
      const path = new URL(`/by-key/${encodeURIComponent(key)}`, url)
      const { status, text } = await send(agent, path, { method: 'GET', headers: {}, body: '', signal })
      if (status !== 200 && status !== 404) throw new Error(`The gateway answered ${status}: ${text}`)
      return JSON.parse(text) as Lookup
    },
    close: () => agent.destroy(),
  }
}

interface Outgoing {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: string
  readonly signal: AbortSignal | undefined
}

function send(
  agent: Agent,
  url: URL,
  { method, headers, body, signal }: Outgoing,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      // Nobody listened, so nobody heard. Every other error may have come after the gateway had the request.
      reject(error.code === 'ECONNREFUSED' ? notExecuted(error) : error)
    }
    const length = { 'content-length': Buffer.byteLength(body) }
    const options = { agent, method, headers: { ...headers, ...length }, ...(signal && { signal }) }
    const receive = (response: IncomingMessage) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.on('error', fail)
      response.on('end', () => resolve({ status: response.statusCode!, text }))
    }
    request(url, options, receive).on('error', fail).end(body)
  })
}
