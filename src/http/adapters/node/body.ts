import type { IncomingMessage } from 'node:http'
import { acrossCopies } from '../../../core/copies.ts'
import { OnlyonceError } from '../../../core/errors.ts'
import type { RequestBody } from '../../index.ts'

/** Bytes that a body parser kept, by the request that they came with. */
const kept = acrossCopies('raw_bodies', () => new WeakMap<IncomingMessage, RequestBody>())

/**
 * Keeps the bytes of a body that a parser reads before the idempotency layer: pass it as `verify`.
 *
 * @example
 * app.use(express.json({ verify: keepRawBody }))
 */
export function keepRawBody(request: IncomingMessage, _response: unknown, bytes: Buffer): void {
  // A parser has unpacked them before.
  kept.set(request, { kind: 'raw', bytes, decoded: true })
}

/**
 * The body of a request as bytes, left in place for the next reader. Where a parser has taken it already, what
 * the parser kept or made of it.
 */
export async function readBody(
  request: IncomingMessage & { body?: unknown },
  sizeMaxBytes: number,
): Promise<RequestBody> {
  const before = kept.get(request)
  if (before !== undefined) return before
  if (!isConsumed(request)) return { kind: 'raw', bytes: await readAndPutBack(request, sizeMaxBytes) }
  return hasNoBody(request) ? NO_BODY : { kind: 'parsed', value: request.body }
}

/**
 * The same where the bytes are wanted. `howToKeep` is the line by which the parser of the framework keeps them; the developer is told it
 * by the first request that lacks them.
 */
export async function readBytes(
  request: IncomingMessage,
  sizeMaxBytes: number,
  { body: wanted }: { readonly body: string | null },
  howToKeep: string,
): Promise<RequestBody> {
  const body = await readBody(request, sizeMaxBytes)
  if (body.kind === 'parsed' && wanted !== 'parsed')
    throw new OnlyonceError('raw_body_missing', { detail: howToKeep })
  return body
}

const NO_BODY: RequestBody = { kind: 'raw', bytes: Buffer.alloc(0) }

function isConsumed(request: IncomingMessage): boolean {
  return request.readableEnded || request.readableDidRead
}

function hasNoBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0
}

/**
 * Reads everything and puts it back in front. The stream has not told its end yet in the moment when the last bytes
 * are taken, so that the next reader reads them as if it were the first.
 */
function readAndPutBack(request: IncomingMessage, sizeMaxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(hungUp())
    const chunks: Buffer[] = []
    let sizeBytes = 0
    const settle = (end: () => void) => {
      request.off('readable', onReadable).off('end', onEnd).off('error', onError).off('close', onError)
      end()
    }
    const onError = () => settle(() => reject(hungUp()))
    const onEnd = () => settle(() => resolve(Buffer.concat(chunks)))
    const onReadable = () => {
      for (let chunk = request.read(); chunk !== null; chunk = request.read()) {
        chunks.push(chunk)
        sizeBytes += chunk.length
        if (sizeBytes > sizeMaxBytes) {
          settle(() => reject(new OnlyonceError('body_too_large')))
          // Unread, the rest would stand before the next request on the same connection.
          request.resume()
          return
        }
      }
      if (!request.complete) return
      const body = Buffer.concat(chunks)
      if (body.length > 0) request.unshift(body)
      kept.set(request, { kind: 'raw', bytes: body })
      settle(() => resolve(body))
    }
    request.on('readable', onReadable).on('end', onEnd).on('error', onError).on('close', onError)
  })
}

/** No client is there to be told; error handling that logs should not take it for a fault of the server's. */
function hungUp(): Error {
  const error = new Error('The client hung up before its request was whole.')
  return Object.assign(error, { status: 400, code: 'ECONNABORTED' })
}
