import type { ServerResponse } from 'node:http'
import type { HttpReply } from '../../boundary/index.ts'
import { bytesOf, callbackOf, listOf, takeHead } from './arguments.ts'
import { Overrides } from './overrides.ts'

export type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>

/**
 * Holds back what is written to a response until it may leave. Express, Fastify and Nest all end at Node's own
 * response, so this is the one place that buffers for all of them: headers set early or late, `write`, `end` with or
 * without a body, streams that are piped in, and whatever a framework's own error handling writes.
 *
 * For whoever writes, the response looks as if it had been sent.
 */
export class CapturedResponse {
  /** Resolves when the response has been ended, by whomever; rejects when it was destroyed instead. */
  readonly ended: Promise<HttpReply>
  readonly #response: ServerResponse
  readonly #before: Headers
  readonly #overrides: Overrides
  readonly #chunks: Buffer[] = []
  readonly #callbacks: (() => void)[] = []
  #resolve: (reply: HttpReply) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  #headers_sent = false
  #is_ended = false
  #status = 200

  /** `before` are the headers that stay when another reply is sent; a framework may have them elsewhere still. */
  constructor(response: ServerResponse, before: Headers = response.getHeaders() as Headers) {
    this.#response = response
    this.#before = { ...before }
    this.#overrides = new Overrides(response)
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#takeOver()
  }

  /** Lets the handler's own reply leave, as it was written. */
  release(): void {
    const body = Buffer.concat(this.#chunks)
    this.#overrides.undo()
    this.#response.statusCode = this.#status
    for (const callback of this.#callbacks) this.#response.once('finish', callback)
    this.#response.end(body)
  }

  /** Sends another reply instead. Headers of the handler's are dropped; those set before it ran stay. */
  replace({ status, headers, body }: HttpReply): void {
    this.#overrides.undo()
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
    if (!this.#is_ended) this.#deafen()
  }

  /** Undoes everything: what is written from now on goes out at once. */
  giveUp(): void {
    this.#overrides.undo()
  }

  /**
   * For a handler that still runs: what it answers goes nowhere. Told that it comes too late, Express would close the
   * connection, on which another request may be under way by now.
   */
  #deafen(): void {
    const nothing = () => this.#response
    for (const name of ['writeHead', 'end', 'flushHeaders', ...CHANGES]) this.#overrides.method(name, nothing)
    this.#overrides.method('write', () => true)
    this.#overrides.property('headersSent', () => false)
  }

  #takeOver(): void {
    const response = this.#response
    const own = {
      writeHead: (status: number, ...rest: unknown[]) => this.#writeHead(status, rest),
      write: (chunk: unknown, ...rest: unknown[]) => this.#write(chunk, rest),
      end: (...given: unknown[]) => this.#end(given),
      flushHeaders: () => this.#head(),
      destroy: (error?: unknown) => this.#destroy(error),
    }
    for (const [name, value] of Object.entries(own)) this.#overrides.method(name, value)
    // A header that comes after them would be sent now, and not be in the reply that is stored.
    for (const name of CHANGES) {
      const change = response[name] as (...given: unknown[]) => unknown
      this.#overrides.method(name, (...given: unknown[]) => {
        if (this.#headers_sent) throw tooLate(name)
        return Reflect.apply(change, response, given)
      })
    }
    this.#overrides.property('headersSent', () => this.#headers_sent)
    this.#overrides.property('writableEnded', () => this.#is_ended)
    this.#overrides.property('finished', () => this.#is_ended)
  }

  /** By way of whatever others have put in place of `writeHead`: sessions add their cookie there. */
  #head(): void {
    if (!this.#headers_sent) this.#response.writeHead(this.#response.statusCode)
  }

  #writeHead(status: number, rest: unknown[]): ServerResponse {
    if (this.#headers_sent) throw tooLate('writeHead')
    takeHead(this.#response, status, rest)
    this.#status = status
    this.#headers_sent = true
    return this.#response
  }

  #write(chunk: unknown, rest: unknown[]): boolean {
    if (this.#is_ended) {
      const late = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })
      process.nextTick(callbackOf(rest) ?? ignore, late)
      return false
    }
    const bytes = bytesOf(chunk, rest)
    this.#head()
    this.#chunks.push(bytes)
    process.nextTick(callbackOf(rest) ?? ignore)
    return true
  }

  #end(given: unknown[]): ServerResponse {
    if (this.#is_ended) return this.#response
    const [chunk, ...rest] = given
    const bytes = isChunk(chunk) ? bytesOf(chunk, rest) : null
    const callback = callbackOf(given)
    this.#head()
    if (bytes !== null) this.#chunks.push(bytes)
    if (callback !== undefined) this.#callbacks.push(callback)
    this.#is_ended = true
    this.#resolve({
      status: this.#status,
      headers: listOf(this.#response.getHeaders()),
      body: hasBody(this.#status) ? Buffer.concat(this.#chunks) : Buffer.alloc(0),
    })
    return this.#response
  }

  /** A stream has failed on its way: there will be no end, and what the handler did so far is all that is known. */
  #destroy(error: unknown): ServerResponse {
    if (!this.#is_ended) this.#reject(error ?? new Error('The handler destroyed its response.'))
    return this.#response
  }
}

const CHANGES = ['setHeader', 'appendHeader', 'removeHeader', 'setHeaders'] as const

function ignore(): void {}

export function isChunk(given: unknown): boolean {
  return given !== undefined && given !== null && typeof given !== 'function'
}

/** What Node says itself, so that a framework's error handling knows it. */
function tooLate(what: string): Error {
  const text = `Cannot ${what} after the headers were sent to the client`
  return Object.assign(new Error(text), { code: 'ERR_HTTP_HEADERS_SENT' })
}

function grouped(headers: HttpReply['headers']): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const [name, value] of headers) groups.set(name, [...(groups.get(name) ?? []), value])
  return groups
}

function hasBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304
}
