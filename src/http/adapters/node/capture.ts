import type { ServerResponse } from 'node:http'
import type { HttpReply } from '../../index.ts'
import { bytesOf, callbackOf, listOf, takeHead } from './arguments.ts'
import { LateResponse, Outer, type Writers, writersOf } from './late.ts'
import { Overrides } from './overrides.ts'
import { Pace } from './pace.ts'
import { pretend, seemEnded, seemFresh, seemSent, speaking, tooLate } from './pretence.ts'

export type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>

/**
 * Holds back what is written to a response until it may leave. Express, Fastify and Nest all end at Node's own
 * response, so this is the one place that buffers for all of them: headers set early or late, `write`, `end` with or
 * without a body, streams that are piped in, and what a framework's own error handling writes.
 *
 * To the code that writes, the response looks as if it had been sent.
 */
export class CapturedResponse {
  /** Resolves when the response has been ended, by whomever; rejects when it was destroyed instead. */
  readonly ended: Promise<HttpReply>
  readonly #response: ServerResponse
  readonly #before: Headers
  readonly #outer: Outer
  readonly #overrides: Overrides
  readonly #pace: Pace
  readonly #sizeMaxBytes: number
  readonly #chunks: Buffer[] = []
  #sizeBytes = 0
  readonly #callbacks: (() => void)[] = []
  #resolve: (reply: HttpReply) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  readonly #pretended = { headersSent: false, isEnded: false }
  #status = 200
  /** What a handler that is not through wrote with, when the response was given back. */
  #writers: Writers = {}
  #late: LateResponse | null = null

  /**
   * `before` are the headers that stay when another reply is sent; a framework may have them elsewhere still. `sizeMaxBytes` is what
   * is kept of a reply that comes too late for its client.
   */
  constructor(
    response: ServerResponse,
    before: Headers,
    sizeMaxBytes: number,
    outer: Outer = new Outer(response),
  ) {
    this.#response = response
    this.#pace = new Pace(response)
    this.#sizeMaxBytes = sizeMaxBytes
    this.#before = before
    this.#outer = outer
    this.#overrides = new Overrides(response)
    this.ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#takeOver()
  }

  /** Lets the handler's own reply leave, as it was written. */
  release(): void {
    this.giveBack()
    this.#response.statusCode = this.#status
    for (const callback of this.#callbacks) this.#response.once('finish', callback)
    endWith(this.#response, whole(this.#chunks))
  }

  /** Whether the handler has not ended its reply yet. */
  get isOpen(): boolean {
    return !this.#pretended.isEnded
  }

  /**
   * Sends another reply instead. Headers of the handler's are dropped; those set before it ran stay. A handler that is not
   * through goes on, and its reply is captured as before: it comes too late for this client, not for the next.
   */
  replace(reply: HttpReply): void {
    this.giveBack()
    if (this.isOpen) {
      const status = this.#pretended.headersSent ? this.#status : this.#response.statusCode
      this.#late = new LateResponse(this.#response, status, this.#pretended, this.#outer)
    }
    speaking(this.#response, () => sendReply(this.#response, this.#before, reply))
    this.#late?.takeOver(this.#writers)
  }

  /** Undoes everything: what is written from now on goes out at once. */
  giveBack(): void {
    if (this.#overrides.isEmpty) return
    if (this.isOpen) this.#writers = writersOf(this.#response)
    // What was put on last goes first, see Overrides.
    seemFresh(this.#response)
    this.#overrides.undo()
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
    for (const name in own) this.#overrides.method(name, own[name as keyof typeof own])
    pretend(response, this.#pretended, this.#overrides)
  }

  /** By way of what others have put in place of `writeHead`: sessions add their cookie there. */
  #head(): void {
    if (!this.#pretended.headersSent) this.#response.writeHead(this.#response.statusCode)
  }

  #writeHead(status: number, rest: unknown[]): ServerResponse {
    if (this.#pretended.headersSent) throw tooLate('writeHead')
    takeHead(this.#response, status, rest)
    this.#status = status
    this.#pretended.headersSent = true
    seemSent(this.#response)
    return this.#response
  }

  #write(chunk: unknown, rest: unknown[]): boolean {
    if (this.#pretended.isEnded) {
      const late = Object.assign(new Error('write after end'), { code: 'ERR_STREAM_WRITE_AFTER_END' })
      process.nextTick(callbackOf(rest) ?? ignore, late)
      return false
    }
    const bytes = bytesOf(chunk, rest)
    this.#head()
    this.#keep(bytes)
    process.nextTick(callbackOf(rest) ?? ignore)
    return this.#pace.took(bytes.length)
  }

  #end(given: unknown[]): ServerResponse {
    if (this.#pretended.isEnded) return this.#response
    const [chunk, ...rest] = given
    const bytes = isChunk(chunk) ? bytesOf(chunk, rest) : null
    const callback = callbackOf(given)
    this.#head()
    if (bytes !== null) this.#keep(bytes)
    if (callback !== undefined) this.#callbacks.push(callback)
    this.#pretended.isEnded = true
    seemEnded(this.#response)
    this.#resolve({
      status: this.#status,
      headers: listOf(this.#response),
      body: hasBody(this.#status) ? this.#body() : Buffer.alloc(0),
    })
    if (this.#late !== null) {
      for (const one of this.#callbacks) this.#response.once('finish', one)
      this.#late.tellHandler()
    }
    return this.#response
  }

  /** What is too late for its client is for the record alone, which keeps no more than this: then the rest is only counted. */
  #keep(bytes: Buffer): void {
    this.#sizeBytes += bytes.length
    if (this.#late === null || this.#sizeBytes <= this.#sizeMaxBytes) this.#chunks.push(bytes)
    else this.#chunks.length = 0
  }

  /** A body of more than the limit is stood for by one that is too large to be kept. */
  #body(): Buffer {
    const large = this.#late !== null && this.#sizeBytes > this.#sizeMaxBytes
    return large ? Buffer.alloc(this.#sizeMaxBytes + 1) : whole(this.#chunks)
  }

  /** A stream has failed on its way: there will be no end, and what the handler did so far is all that is known. */
  #destroy(error: unknown): ServerResponse {
    if (!this.#pretended.isEnded) this.#reject(error ?? new Error('The handler destroyed its response.'))
    return this.#response
  }
}

function ignore(): void {}

function whole(chunks: readonly Buffer[]): Buffer {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

/**
 * Ends a response with these bytes. As text of one byte a character they go out in one piece with the headers, where a
 * Buffer would be written beside them; for long bodies the copy would cost more than that.
 */
function endWith(response: ServerResponse, body: Buffer): void {
  if (body.length > ONE_PIECE_MAX_BYTES) response.end(body)
  else response.end(body.toString('latin1'), 'latin1')
}

const ONE_PIECE_MAX_BYTES = 16_384

export function isChunk(given: unknown): boolean {
  return given !== undefined && given !== null && typeof given !== 'function'
}

/** Sends a reply that is not the handler's, with the headers that were there before. */
export function sendReply(
  response: ServerResponse,
  before: Headers,
  { status, headers, body }: HttpReply,
): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name)
  for (const [name, value] of Object.entries(before)) {
    if (value !== undefined) response.setHeader(name, value)
  }
  response.statusCode = status
  response.statusMessage = ''
  for (const [name, values] of grouped(headers)) {
    response.setHeader(name, values.length === 1 ? values[0]! : values)
  }
  if (hasBody(status)) response.setHeader('content-length', body.length)
  else response.removeHeader('content-length')
  endWith(response, body)
}

function grouped(headers: HttpReply['headers']): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [value])
    else group.push(value)
  }
  return groups
}

function hasBody(status: number): boolean {
  return status >= 200 && status !== 204 && status !== 304
}
