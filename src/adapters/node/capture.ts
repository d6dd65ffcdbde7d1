import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { HttpReply } from '../../boundary/index.ts'

type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>

/**
 * Holds back what is written to a response until it may leave. Express, Fastify and Nest all end at Node's own
 * response, so this is the one place that buffers for all of them: headers set early or late, `write`, `end` with or
 * without a body, streams that are piped in, and whatever a framework's own error handling writes.
 *
 * For whoever writes, the response looks as if it had been sent.
 */
export class CapturedResponse {
  /** Resolves when the response has been ended, by whomever. */
  readonly ended: Promise<HttpReply>
  readonly #response: ServerResponse
  readonly #before: Headers
  readonly #chunks: Buffer[] = []
  readonly #callbacks: (() => void)[] = []
  #resolve: (reply: HttpReply) => void = () => {}
  #headers_sent = false
  #is_ended = false

  constructor(response: ServerResponse) {
    this.#response = response
    this.#before = { ...response.getHeaders() } as Headers
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#takeOver()
  }

  /** Lets the handler's own reply leave, as it was written. */
  release(): void {
    const body = Buffer.concat(this.#chunks)
    this.#giveBack()
    for (const callback of this.#callbacks) this.#response.once('finish', callback)
    this.#response.end(body)
  }

  /** Sends another reply instead. Headers of the handler's are dropped; those set before it ran stay. */
  replace({ status, headers, body }: HttpReply): void {
    this.#giveBack()
    const response = this.#response
    for (const name of response.getHeaderNames()) response.removeHeader(name)
    for (const [name, value] of Object.entries(this.#before)) {
      if (value !== undefined) response.setHeader(name, value)
    }
    response.statusCode = status
    response.statusMessage = ''
    for (const [name, values] of grouped(headers)) {
      response.setHeader(name, values.length === 1 ? values[0]! : values)
    }
    if (hasBody(status)) response.setHeader('content-length', body.length)
    else response.removeHeader('content-length')
    response.end(body)
  }

  /** Undoes everything: what is written from now on goes out at once. */
  giveUp(): void {
    this.#giveBack()
  }

  #takeOver(): void {
    const own = {
      writeHead: (status: number, ...rest: unknown[]) => this.#writeHead(status, rest),
      write: (chunk: unknown, ...rest: unknown[]) => this.#write(chunk, rest),
      end: (...given: unknown[]) => this.#end(given),
      flushHeaders: () => {
        this.#headers_sent = true
      },
    }
    for (const [name, value] of Object.entries(own)) {
      Object.defineProperty(this.#response, name, { value, configurable: true, writable: true })
    }
    const seem = (name: string, get: () => unknown) =>
      Object.defineProperty(this.#response, name, { get, configurable: true })
    seem('headersSent', () => this.#headers_sent)
    seem('writableEnded', () => this.#is_ended)
    seem('finished', () => this.#is_ended)
  }

  #giveBack(): void {
    const response = this.#response as unknown as Record<string, unknown>
    for (const name of TAKEN_OVER) delete response[name]
  }

  #writeHead(status: number, rest: unknown[]): ServerResponse {
    if (this.#headers_sent) throw new Error('Cannot write headers after they are sent to the client')
    this.#response.statusCode = status
    const [first, second] = rest
    if (typeof first === 'string') this.#response.statusMessage = first
    this.#setHeaders(
      (typeof first === 'string' ? second : first) as OutgoingHttpHeaders | unknown[] | undefined,
    )
    this.#headers_sent = true
    return this.#response
  }

  #setHeaders(headers: OutgoingHttpHeaders | unknown[] | undefined): void {
    if (headers === undefined || headers === null) return
    for (const [name, value] of Array.isArray(headers) ? pairs(headers) : Object.entries(headers)) {
      if (value !== undefined) this.#response.setHeader(name, value as string)
    }
  }

  #write(chunk: unknown, rest: unknown[]): boolean {
    if (this.#is_ended) {
      throw Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })
    }
    this.#headers_sent = true
    this.#chunks.push(bytesOf(chunk, rest))
    const callback = rest.find((one) => typeof one === 'function') as (() => void) | undefined
    if (callback !== undefined) process.nextTick(callback)
    return true
  }

  #end(given: unknown[]): ServerResponse {
    if (this.#is_ended) return this.#response
    const callback = given.find((one) => typeof one === 'function') as (() => void) | undefined
    if (callback !== undefined) this.#callbacks.push(callback)
    const [chunk, ...rest] = given
    if (chunk !== undefined && chunk !== null && typeof chunk !== 'function') {
      this.#chunks.push(bytesOf(chunk, rest))
    }
    this.#headers_sent = true
    this.#is_ended = true
    this.#resolve({
      status: this.#response.statusCode,
      headers: listOf(this.#response.getHeaders()),
      body: Buffer.concat(this.#chunks),
    })
    return this.#response
  }
}

const TAKEN_OVER = ['writeHead', 'write', 'end', 'flushHeaders', 'headersSent', 'writableEnded', 'finished']

export function bytesOf(chunk: unknown, rest: readonly unknown[]): Buffer {
  if (typeof chunk === 'string') {
    const encoding = rest.find((one) => typeof one === 'string') as BufferEncoding | undefined
    return Buffer.from(chunk, encoding)
  }
  if (chunk instanceof Uint8Array) return Buffer.from(chunk)
  throw new TypeError('A response takes strings, Buffers and Uint8Arrays.')
}

export function listOf(headers: OutgoingHttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value]) =>
    value === undefined
      ? []
      : (Array.isArray(value) ? value : [value]).map((one): [string, string] => [
          name.toLowerCase(),
          `${one}`,
        ]),
  )
}

function grouped(headers: HttpReply['headers']): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const [name, value] of headers) groups.set(name, [...(groups.get(name) ?? []), value])
  return groups
}

/** writeHead takes a flat list too, and a list of pairs. */
function pairs(list: readonly unknown[]): [string, unknown][] {
  if (list.every(Array.isArray)) return list as unknown as [string, unknown][]
  return Array.from({ length: list.length / 2 }, (_, i) => [`${list[2 * i]}`, list[2 * i + 1]])
}

function hasBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304
}
