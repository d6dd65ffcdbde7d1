import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate } from 'node:zlib'
import { OnlyonceError } from '../core/errors.ts'
import { memberOf } from '../core/thrown.ts'
import { isUtf8Json, readMediaType } from '../fingerprint/index.ts'
import { type BoundaryRequest, encodingOf, mediaTypeOf, type RequestBody } from './request.ts'

/**
 * The body of a request as it counts. JSON counts by its meaning, so it is unpacked: the parser behind the layer unpacks it too, and
 * the same JSON is the same request whether it came in gzip or not. Everything else counts as it was sent.
 */
export function bodyThatCounts(
  request: BoundaryRequest,
  body: RequestBody,
  sizeMaxBytes: number,
): RequestBody | Promise<RequestBody> {
  const mediaType = mediaTypeOf(request)
  const { json } = readMediaType(mediaType)
  if (json && !isUtf8Json(mediaType)) throw new OnlyonceError('charset_unsupported')
  if (body.kind === 'parsed') return body
  if (body.bytes.length > sizeMaxBytes) throw new OnlyonceError('body_too_large')
  const encoding = encodingOf(request)
  if (!json || body.decoded === true || encoding === undefined || body.bytes.length === 0) return body
  return unpack(body.bytes, encoding, sizeMaxBytes).then((bytes) => ({
    kind: 'raw',
    bytes,
    decoded: true,
  }))
}

/** Bounded while it is unpacked: a few bytes of gzip can hold a gigabyte. Off the event loop, in Node's own threads. */
async function unpack(bytes: Uint8Array, encoding: string, sizeMaxBytes: number): Promise<Buffer> {
  const inflated = UNPACKERS.get(encoding)
  if (inflated === undefined) throw new OnlyonceError('encoding_unsupported')
  try {
    return await inflated(bytes, { maxOutputLength: sizeMaxBytes })
  } catch (cause) {
    const large = memberOf(cause, 'code') === 'ERR_BUFFER_TOO_LARGE'
    throw new OnlyonceError(large ? 'body_too_large' : 'encoding_malformed', { cause })
  }
}

type Unpack = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Promise<Buffer>

/** What body parsers unpack. One encoding at a time, as they do it. */
const UNPACKERS = new Map<string, Unpack>([
  ['gzip', promisify(gunzip) as Unpack],
  ['deflate', promisify(inflate) as Unpack],
  ['br', promisify(brotliDecompress) as Unpack],
])
