import type { Boundary, RequestBody } from '../../index.ts'
import { readBody, readBytes } from '../node/body.ts'
import type { KoaContext } from './index.ts'

interface Parsed {
  readonly body?: unknown
  /** The text that koa-bodyparser and @koa/bodyparser leave of what they have parsed. */
  readonly rawBody?: unknown
}

/** The body of a request, also where a parser of Koa's has read it before: those leave the text of it beside what they made of it. */
export async function bodyOf(
  { req, request }: Pick<KoaContext, 'req' | 'request'>,
  { policy, bodySizeMaxBytes }: Pick<Boundary<unknown>, 'policy' | 'bodySizeMaxBytes'>,
): Promise<RequestBody> {
  const { body, rawBody } = request as Parsed
  // Bytes that are no UTF-8 have all become the same character: then other bytes could have been the same text.
  if (typeof rawBody === 'string' && !rawBody.includes('\uFFFD')) {
    const kept = await readBody(req, bodySizeMaxBytes)
    return kept.kind === 'raw' ? kept : { kind: 'raw', bytes: Buffer.from(rawBody), decoded: true }
  }
  const read = await readBytes(req, bodySizeMaxBytes, policy, HOW_TO_KEEP)
  return read.kind === 'parsed' ? { kind: 'parsed', value: body } : read
}

const HOW_TO_KEEP =
  'In Koa: put idempotent() before the body parser, or take one that keeps ctx.request.rawBody, such as koa-bodyparser.'
