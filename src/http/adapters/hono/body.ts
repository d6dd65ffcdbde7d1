import type { HonoRequest } from 'hono'
import { OnlyonceError } from '../../../core/errors.ts'
import type { RequestBody } from '../../index.ts'
import { unreadBody } from '../fetch/body.ts'

/**
 * The body of a request. Where a validator has read it before, it is in Hono's cache, in the form in which it was asked
 * for; `c.req.json()` leaves the text there.
 */
export async function bodyOf(request: HonoRequest, sizeMaxBytes: number): Promise<RequestBody> {
  const unread = await unreadBody(request.raw, sizeMaxBytes)
  if (unread !== null) return unread
  const { arrayBuffer, blob, text, json, formData } = request.bodyCache as unknown as Cache
  if (arrayBuffer !== undefined) return raw(await arrayBuffer)
  if (blob !== undefined) return raw(await (await blob).arrayBuffer())
  if (text !== undefined) return rawText(await text)
  if (json !== undefined) return { kind: 'parsed', value: await json }
  if (formData !== undefined) return parsedForm(await formData)
  throw new OnlyonceError('raw_body_missing', { detail: READ_ALREADY })
}

/** What may be in the cache. Its type leaves the promises out. `json` is left by parsers other than Hono's. */
interface Cache {
  readonly arrayBuffer?: Promise<ArrayBuffer>
  readonly blob?: Promise<Blob>
  readonly text?: Promise<string>
  readonly json?: Promise<unknown>
  readonly formData?: Promise<FormData>
}

function raw(bytes: ArrayBuffer): RequestBody {
  return { kind: 'raw', bytes: new Uint8Array(bytes) }
}

/** Bytes that are no UTF-8 have all become the same character: then other bytes could have been the same text. */
function rawText(text: string): RequestBody {
  return text.includes('\uFFFD') ? { kind: 'parsed', value: text } : { kind: 'raw', bytes: Buffer.from(text) }
}

/** The fields in their order. What a file holds is not among them any more. */
function parsedForm(form: FormData): RequestBody {
  const fields = [...form.entries()]
  if (fields.some(([, value]) => typeof value !== 'string')) {
    throw new OnlyonceError('raw_body_missing', { detail: READ_ALREADY })
  }
  return { kind: 'parsed', value: fields }
}

const READ_ALREADY = 'Read it by c.req, not by c.req.raw, in what comes before.'
