import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import {
  brotliDecompressSync,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzipSync,
  inflateSync,
} from 'node:zlib'

/** A body as its handler wants it, in frameworks that leave this to the handler. */
export function unpacked(bytes: Buffer, encoding: string | null | undefined): Buffer {
  switch (encoding) {
    case 'gzip':
      return gunzipSync(bytes)
    case 'deflate':
      return inflateSync(bytes)
    case 'br':
      return brotliDecompressSync(bytes)
    default:
      return bytes
  }
}

/** The same for a stream. Fastify counts what came in by this member, where a stream has been put before its parser. */
export function unpackStream(headers: IncomingHttpHeaders, payload: Readable): Readable {
  const encoding = headers['content-encoding']
  const unpacking =
    encoding === 'gzip'
      ? createGunzip()
      : encoding === 'deflate'
        ? createInflate()
        : encoding === 'br'
          ? createBrotliDecompress()
          : null
  return unpacking === null
    ? payload
    : Object.assign(payload.pipe(unpacking), { receivedEncodedLength: Number(headers['content-length']) })
}
