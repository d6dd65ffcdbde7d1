/**
 * How the SDK's requests leave the process. Its own client is not used, for four reasons that its source shows: it sends a
 * request again after ECONNRESET and EPIPE even where retries are off; it takes no AbortSignal, and its timeout is that of
 * an idle socket; nobody learns from it whether anything was written; and an answer that is JSON but no object ends in an
 * unhandled rejection, while one of 500 without an `error` member counts as success.
 */
import http from 'node:http'
import https from 'node:https'
import type Stripe from 'stripe'
import { STRIPE_LIMITS } from './limits.ts'

/** What is known about one request and its answer. */
export interface Exchange {
  /** Whether the other side may have seen any of it. */
  sent: boolean
  /** Of the answer; null while there is none. */
  status: number | null
  requestId: string | null
  /** What went wrong on the way, in words without secrets. */
  trouble: string | null
}

export interface Sender {
  /** Runs one request of the SDK, and ends it with the signal, or when its time is over. It never throws. */
  send<T>(signal: AbortSignal | undefined, work: (stripe: Stripe) => Promise<T>): Promise<Sent<T>>
}

export type Sent<T> =
  | { readonly ok: true; readonly answer: T }
  | { readonly ok: false; readonly error: unknown; readonly exchange: Exchange }

interface Flight {
  readonly exchange: Exchange
  readonly over: AbortSignal
}

/** An SDK with a client of its own, for one request at a time. */
interface Lane {
  readonly stripe: Stripe
  flight: Flight | null
}

/**
 * The SDK hands nothing of ours through to its client, so that each request has an SDK to itself, and they are used again: one takes
 * 0.3 ms and 70 KB to make. An AsyncLocalStorage was dropped for this. On Node.js 20 it slows down every promise of the process.
 */
export function makeSender(
  protocol: 'http' | 'https',
  timeoutMs: number,
  makeStripe: (client: Stripe.HttpClient) => Stripe,
): Sender {
  const { Agent } = protocol === 'https' ? https : http
  const agent = new Agent({
    keepAlive: true,
    maxSockets: STRIPE_LIMITS.socketsMax,
    maxFreeSockets: STRIPE_LIMITS.socketsIdleMax,
    timeout: STRIPE_LIMITS.socketIdleMs,
  })
  const idle: Lane[] = []
  const makeLane = (): Lane => {
    const lane: Lane = {
      flight: null,
      stripe: makeStripe({
        getClientName: () => 'onlyonce',
        // Asynchronous, so that nothing is thrown at once: the SDK would make an unhandled rejection of it.
        async makeRequest(host, port, path, method, headers, body) {
          const { flight } = lane
          if (flight === null) throw new Error('A request to Stripe goes through send().')
          const options = { host, port, path, method, headers: headers as http.OutgoingHttpHeaders, agent }
          return answerOf(await exchangeOver(protocol, options, body, flight), flight.exchange)
        },
      }),
    }
    return lane
  }
  /** A lane is free again when the SDK is done with it, which may be later than anybody waits. */
  const run = async <T>(flight: Flight, work: (stripe: Stripe) => Promise<T>): Promise<T> => {
    const lane = idle.pop() ?? makeLane()
    lane.flight = flight
    try {
      return await work(lane.stripe)
    } finally {
      lane.flight = null
      if (idle.length < STRIPE_LIMITS.socketsMax) idle.push(lane)
    }
  }
  return {
    async send(signal, work) {
      const exchange: Exchange = { sent: false, status: null, requestId: null, trouble: null }
      const over = new AbortController()
      const stop = () => {
        exchange.trouble ??= signal?.aborted ? 'it was given up' : 'it was not answered in time'
        over.abort()
      }
      const timer = setTimeout(stop, timeoutMs)
      signal?.addEventListener('abort', stop, { once: true })
      if (signal?.aborted) stop()
      try {
        const answer = await Promise.race([
          run({ exchange, over: over.signal }, work),
          // Whatever becomes of the SDK's promise, nobody waits for it longer than this.
          new Promise<never>((_, reject) => onAbort(over.signal, () => reject(new Error(exchange.trouble!)))),
        ])
        return { ok: true, answer }
      } catch (error) {
        // A copy: what the request still sees afterwards changes nothing any more.
        return { ok: false, error, exchange: { ...exchange } }
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
      }
    },
  }
}

interface Answer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  readonly body: Buffer
}

function exchangeOver(
  protocol: 'http' | 'https',
  options: http.RequestOptions,
  body: string,
  { exchange, over }: Flight,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      exchange.trouble ??= describe(error)
      // Without the code of the cause: the SDK would send the request again for some of them.
      reject(new Error(exchange.trouble))
    }
    if (over.aborted) return fail(undefined)
    const request = (protocol === 'https' ? https : http).request(options)
    request.on('socket', (socket) => {
      // Until a new connection stands, with TLS on top, whatever was written waits in this process.
      if (request.reusedSocket || !socket.connecting) exchange.sent = true
      else socket.once(protocol === 'https' ? 'secureConnect' : 'connect', () => (exchange.sent = true))
    })
    request.on('response', (response) => {
      exchange.status = response.statusCode ?? null
      exchange.requestId = idOf(response.headers['request-id'])
      collect(response).then(
        (bytes) => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: bytes }),
        (error) => {
          request.destroy()
          fail(error)
        },
      )
    })
    request.on('error', fail)
    onAbort(over, () => {
      request.destroy()
      // A request that waits for a connection tells nothing when it is destroyed.
      fail(undefined)
    })
    request.end(body)
  })
}

async function collect(response: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > STRIPE_LIMITS.answerMaxBytes) throw new Error('its answer is too long')
    chunks.push(chunk)
  }
  if (!response.complete) throw new Error('its answer was cut off')
  return Buffer.concat(chunks)
}

/** The answer as the SDK wants it. Only what it may take for one comes through. */
function answerOf({ status, headers, body }: Answer, exchange: Exchange): Stripe.HttpClientResponse {
  const known = { 'request-id': exchange.requestId ?? '', ...pick(headers, ['idempotent-replayed']) }
  return {
    getStatusCode: () => status,
    getHeaders: () => known,
    getRawResponse: () => ({ statusCode: status, headers: known }),
    toStream: () => {
      throw new Error('Answers are not streamed.')
    },
    async toJSON() {
      const value = parse(body)
      const error = (value as { error?: unknown } | undefined)?.error
      const wrong = !isObject(value)
        ? 'its answer is not JSON'
        : status < 200 || status > 299
          ? !isObject(error) && 'its answer is no error of the API'
          : error !== undefined && 'its answer has a status of success and an error'
      if (wrong === false) return value
      exchange.trouble ??= wrong
      throw new Error(wrong)
    },
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function pick(headers: http.IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (headers[name] ? [[name, `${headers[name]}`]] : [])))
}

/** A text that is safe to show: what the other side sends is not. */
function idOf(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && /^[\w-]{1,64}$/.test(header) ? header : null
}

/** Only codes and our own words: messages of the platform may have addresses in them, but never secrets. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'it was given up'
  return 'code' in error && typeof error.code === 'string'
    ? `${error.code}: ${error.message}`.slice(0, 200)
    : error.message
}

function onAbort(signal: AbortSignal, tell: () => void): void {
  if (signal.aborted) tell()
  else signal.addEventListener('abort', tell, { once: true })
}
