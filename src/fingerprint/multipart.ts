import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'

/**
 * One part of a form: its headers, sorted by their names in lower case, and its bytes.
 *
 * @example
 * const part: Part = { headers: [['content-disposition', 'form-data; name="amount"']], content: Buffer.from('5') }
 */
export interface Part {
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly content: Uint8Array
}

/**
 * A form: its parts in their order, and what its media type says beside the boundary.
 *
 * @example
 * const { parameters, parts }: MultipartForm = parseMultipart(mediaType, body)
 */
export interface MultipartForm {
  readonly parameters: readonly string[]
  readonly parts: readonly Part[]
}

/**
 * Whether a media type is that of forms with parts.
 *
 * @example
 * isMultipartForm('multipart/form-data; boundary=x') // true
 */
export function isMultipartForm(mediaType: string | undefined): boolean {
  return /^\s*multipart\/form-data\s*(?:;|$)/i.test(mediaType ?? '')
}

/**
 * Reads a form strictly (RFC 7578, RFC 2046). What it gives is all that the body holds beside its boundary: two bodies with the same
 * parts differ in nothing else. So everything that parsers of forms skip or forgive is refused: text before the first
 * delimiter and behind the last, padding behind a delimiter, folded or repeated headers, and the boundary inside of a part. The last
 * matters most: a lenient parser would split there, and the same parts under another boundary would be another form to it.
 *
 * busboy 1.6.0 was run on each of these, and not taken. It skips the text before the first delimiter and behind the last, joins folded
 * headers and takes the first of repeated ones, so that two different bodies give the same parts. It leaves a part out without a word
 * whose delimiter is padded, or that says no name. Where the boundary begins a line of a part, it ends the part there and drops the rest.
 *
 * @example
 * parseMultipart('multipart/form-data; boundary=x', Buffer.from('--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n'))
 */
export function parseMultipart(mediaType: string, body: Uint8Array): MultipartForm {
  const { boundary, others: parameters } = parametersOf(mediaType)
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const delimiter = Buffer.from(`--${boundary}`, 'latin1')
  const parts: Part[] = []
  if (bytes.indexOf(delimiter) !== 0) refuse('It does not begin with its boundary.')
  for (let at = delimiter.length; ; ) {
    const rest = bytes.toString('latin1', at, at + 5)
    if (rest === '--' || rest === '--\r\n') return { parameters, parts }
    if (!rest.startsWith(CRLF)) refuse('A boundary is followed by something else than a new line.')
    const start = at + CRLF.length
    const next = bytes.indexOf(delimiter, start)
    const end = next - CRLF.length
    if (next < 0 || end < start || bytes.toString('latin1', end, next) !== CRLF) {
      refuse('A part does not end with a new line and the boundary, or holds the boundary.')
    }
    if (parts.length >= LIMITS.jsonMembersMax) refuse('It has too many parts.')
    parts.push(partOf(bytes.subarray(start, end)))
    at = next + delimiter.length
  }
}

const CRLF = '\r\n'

function partOf(section: Buffer): Part {
  const end = section.indexOf('\r\n\r\n', 0, 'latin1')
  if (end < 0) refuse('A part has no empty line behind its headers.')
  const headers = section
    .toString('latin1', 0, end)
    .split(CRLF)
    .map(headerOf)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  const names = headers.map(([name]) => name)
  if (new Set(names).size < names.length) refuse('A part has a header twice.')
  const disposition = headers.find(([name]) => name === 'content-disposition')?.[1] ?? ''
  if (!/^form-data\s*;.*\bname=/i.test(disposition)) refuse('A part does not say its name.')
  return { headers, content: section.subarray(end + 4) }
}

function headerOf(line: string): readonly [string, string] {
  const found = /^([!#$%&'*+.^_`|~\dA-Za-z-]+):[ \t]*([^\r\n\0]*)$/.exec(line)
  if (found === null) return refuse('A header of a part is not well-formed.')
  return [found[1]!.toLowerCase(), found[2]!.trimEnd()]
}

/** The boundary, and what else the media type says: a charset, for instance. */
interface Parameters {
  readonly boundary: string
  readonly others: readonly string[]
}

/** Read to its end: with two boundaries, or with something between them, it would be the parser's choice which counts. */
function parametersOf(mediaType: string): Parameters {
  const text = mediaType.slice(mediaType.indexOf(';'))
  const found = new Map<string, string>()
  PARAMETER.lastIndex = 0
  while (PARAMETER.lastIndex < text.length) {
    const one = PARAMETER.exec(text)
    if (one === null) return refuse('The parameters of its media type are not well-formed.')
    const name = one[1]!.toLowerCase()
    if (found.has(name)) refuse('A parameter of its media type is given twice.')
    found.set(name, one[2] ?? one[3] ?? '')
  }
  const boundary = found.get('boundary') ?? ''
  if (!BOUNDARY.test(boundary)) refuse('Its media type names no boundary.')
  found.delete('boundary')
  return { boundary, others: [...found].sort().flat() }
}

const PARAMETER = /;[ \t]*([^\s=;"]+)=(?:"([^"\\]*)"|([^\s;"]*))[ \t]*/y
/** RFC 2046, section 5.1.1. */
const BOUNDARY = /^[\dA-Za-z'()+_,\-./:=? ]{0,69}[\dA-Za-z'()+_,\-./:=?]$/

function refuse(detail: string): never {
  throw new OnlyonceError('multipart_malformed', { detail })
}
