import { OnlyonceError } from '../../../core/errors.ts'
import type { RequestBody } from '../../index.ts'

/**
 * The body of a request as bytes, left in place for the next reader. A copy is read and the request itself is
 * handed on, because frameworks add to it what a new one would not have (`nextUrl`, `cf`). Null when it has been read
 * already: a request gives its body once.
 */
export async function unreadBody(request: Request, sizeMaxBytes: number): Promise<RequestBody | null> {
  // Before anything is read of it: then it is still the server's to throw away, and the connection goes on.
  if (Number(request.headers.get('content-length')) > sizeMaxBytes) {
    throw new OnlyonceError('body_too_large')
  }
  const copy = copyOf(request)
  if (copy === null) return null
  return {
    kind: 'raw',
    bytes: copy.body === null ? NOTHING : await readAll(request, copy.body, sizeMaxBytes),
  }
}

async function readAll(
  request: Request,
  body: ReadableStream<Uint8Array>,
  sizeMaxBytes: number,
): Promise<Buffer> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return Buffer.concat(chunks)
    chunks.push(value)
    sizeBytes += value.length
    if (sizeBytes > sizeMaxBytes) {
      // Both copies, or the rest would be kept for the other; and not awaited: a client may never send the rest.
      for (const givenUp of [reader, request.body]) givenUp?.cancel().catch(() => {})
      throw new OnlyonceError('body_too_large')
    }
  }
}

/** The same, where nothing but the request itself could tell what it was. */
export async function bodyOf(request: Request, sizeMaxBytes: number): Promise<RequestBody> {
  const body = await unreadBody(request, sizeMaxBytes)
  if (body === null) throw new OnlyonceError('raw_body_missing', { detail: READ_ALREADY })
  return body
}

/** A body that was read, or that is being read, cannot be copied. */
function copyOf(request: Request): Request | null {
  if (request.bodyUsed) return null
  try {
    return request.clone()
  } catch {
    return null
  }
}

const NOTHING = Buffer.alloc(0)
const READ_ALREADY = 'Read request.clone() in what comes before, or read the body in the handler.'
