import type { FastifyRequest } from 'fastify'
import { parseStrictJson } from 'onlyonce/json'
import { Refused } from '../problems.ts'
import { shownField } from './cards.ts'
import { API_LIMITS } from './limits.ts'
import type { Api } from './type.ts'

/**
 * Reads JSON, and nothing else, as strictly as the library fingerprints it: JSON.parse keeps the last of two members with
 * one name and rounds large numbers, and either would pay another sum than the one that was written.
 */
export function readJsonOnly(app: Api): void {
  app.removeAllContentTypeParsers()
  const { bodySizeMaxBytes, jsonDepthMax, jsonMembersMax } = API_LIMITS
  const options = { parseAs: 'buffer', bodyLimit: bodySizeMaxBytes } as const
  app.addContentTypeParser('application/json', options, async (request: FastifyRequest, body: Buffer) => {
    refuseEncodings(request)
    if (body.length === 0) return undefined
    const { value, inexact } = parseStrictJson(body, {
      bodySizeMaxBytes,
      jsonDepthMax,
      jsonMembersMax,
    })
    const [number] = inexact
    if (number !== undefined) refuseAt(number.pointer.split('/').slice(1), INEXACT)
    refuseUnfit(value)
    return value
  })
}

/**
 * A route that asks for no body takes none, as others take no members that they do not know. Bytes are another matter: a route
 * that has a parser of its own reads them.
 */
export function refuseUnasked({ body, is404, routeOptions, method, headers }: FastifyRequest): void {
  // Of these methods no body is read, so only its length tells that there is one.
  const unread = method === 'GET' || method === 'HEAD'
  if (unread && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0)) {
    throw new Refused('invalid_request', { detail: 'No body is taken here.' })
  }
  if (body === undefined || is404 || routeOptions.schema?.body !== undefined) return
  if (!Buffer.isBuffer(body) && JSON.stringify(body) !== '{}') {
    throw new Refused('invalid_request', { detail: 'No body is taken here.' })
  }
}

function refuseEncodings({ headers }: FastifyRequest): void {
  const charsets = (headers['content-type'] ?? '').matchAll(/charset\s*=\s*"?([^\s;"]*)/gi)
  if ([...charsets].some(([, charset]) => charset!.toLowerCase() !== 'utf-8')) {
    throw new Refused('media_type_unsupported')
  }
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Refused('media_type_unsupported', { detail: 'Send the body without Content-Encoding.' })
  }
}

/**
 * PostgreSQL keeps any text but one with NUL in it, and a whole number past 2^53 may have been meant as its neighbour. Told
 * here, either is a mistake of the client's and not an error of ours.
 */
export function refuseUnfit(value: unknown, path: readonly string[] = []): void {
  if (typeof value === 'string' && value.includes('\0')) refuseAt(path, NUL)
  if (typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER) refuseAt(path, INEXACT)
  if (typeof value !== 'object' || value === null) return
  for (const [name, member] of Object.entries(value)) {
    if (name.includes('\0')) refuseAt([...path, name.replaceAll('\0', '')], NUL)
    refuseUnfit(member, [...path, name])
  }
}

const NUL = 'holds the character NUL, which no text here can have.'
const INEXACT = 'is a number that cannot be read exactly.'

function refuseAt(path: readonly string[], complaint: string): never {
  const field = shownField(path)
  throw new Refused('invalid_request', {
    ...(field !== '' && { field }),
    detail: `${field || 'The body'} ${complaint}`,
  })
}
