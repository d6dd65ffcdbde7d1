import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { OnlyonceError } from '../../../core/errors.ts'
import type { RequestBody } from '../../index.ts'
import { readBody } from '../node/body.ts'

/**
 * Keeps the bytes of a body while the framework's own parser reads them. In every way to read a stream, each chunk is told
 * as `data` exactly once, so nothing is read twice, nothing is copied, and the parser's limit is the parser's.
 */
export class TappedBody {
  readonly #payload: Readable
  readonly #sizeMaxBytes: number
  /** Another hook has put a stream of its own in front of the parser; what that is for is to unpack. */
  readonly #decoded: boolean
  #chunks: Buffer[] = []
  #sizeBytes = 0
  readonly #untap: () => void

  constructor(payload: Readable, sizeMaxBytes: number, decoded: boolean) {
    this.#payload = payload
    this.#sizeMaxBytes = sizeMaxBytes
    this.#decoded = decoded
    const { emit } = payload
    // Not a listener: that would start the flow before the parser is there. Not a stream in between: that would be one more
    // for each request. And left there when it is over: a property can be deleted cheaply only while it is the last one, and
    // listeners add theirs.
    payload.emit = (name: string | symbol, ...values: unknown[]) => {
      if (name === 'data') this.#keep(values[0])
      return Reflect.apply(emit, payload, [name, ...values])
    }
    this.#untap = () => {
      payload.emit = emit
    }
  }

  /** What was read, or is read now where no parser has: a parser may leave the body to the handler. */
  read(raw: IncomingMessage, parsed: unknown): RequestBody | Promise<RequestBody> {
    this.#untap()
    if (this.#payload.readableEnded) {
      if (this.#sizeBytes > this.#sizeMaxBytes) throw new OnlyonceError('body_too_large')
      return {
        kind: 'raw',
        bytes: this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks),
        decoded: this.#decoded,
      }
    }
    if (this.#payload.readableDidRead) return { kind: 'parsed', value: parsed }
    return readBody(raw, this.#sizeMaxBytes)
  }

  #keep(chunk: unknown): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
    this.#sizeBytes += bytes.length
    if (this.#sizeBytes <= this.#sizeMaxBytes) this.#chunks.push(bytes)
    else this.#chunks = []
  }
}
