import type { Reply } from '../record/index.ts'

/** What goes under one seal: all of a reply but its status and schema. */
export type Contents = Pick<Reply, 'headers' | 'body' | 'sealedBy'>

interface Head {
  readonly headers: Reply['headers']
  /** False when the body was too large to be kept, which is not the same as an empty one. */
  readonly kept: boolean
  /** Null, unless what was sealed had a seal of its own: what goes in comes out. */
  readonly sealed_by: string | null
}

const LENGTH_BYTES = 4

/**
 * Headers and body as one piece: the length of the head, the head as JSON, the bytes of the body. JSON escapes
 * halves of surrogate pairs, so any text survives.
 */
export function packReply({ headers, body, sealedBy }: Contents): Buffer {
  const head: Head = { headers, kept: body !== null, sealed_by: sealedBy }
  const text = Buffer.from(JSON.stringify(head), 'utf8')
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32BE(text.length)
  return Buffer.concat(body === null ? [length, text] : [length, text, body])
}

/** Only for what a seal has vouched for: no other writer can have made it, so its form is not doubted. */
export function unpackReply(bytes: Buffer): Contents {
  const bodyStart = LENGTH_BYTES + bytes.readUInt32BE(0)
  const head = JSON.parse(bytes.toString('utf8', LENGTH_BYTES, bodyStart)) as Head
  return {
    headers: head.headers,
    body: head.kept ? bytes.subarray(bodyStart) : null,
    sealedBy: head.sealed_by,
  }
}
