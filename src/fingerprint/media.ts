/**
 * A media type in one spelling, and whether it is JSON.
 *
 * @example
 * const media: MediaType = { text: 'application/json', json: true }
 */
export interface MediaType {
  readonly text: string
  readonly json: boolean
}

const JSON_TYPE: MediaType = { text: 'application/json', json: true }

/**
 * Reads a Content-Type. JSON has no parameters that mean anything (RFC 8259, section 11), so they are
 * dropped there; elsewhere a charset changes what the bytes say, so they count.
 *
 * @example
 * readMediaType('Application/JSON; charset=utf-8') // { text: 'application/json', json: true }
 */
export function readMediaType(mediaType: string | undefined): MediaType {
  if (mediaType === 'application/json') return JSON_TYPE
  const [essence = '', ...parameters] = (mediaType ?? '').split(';').map((piece) => piece.trim())
  const type = essence.toLowerCase()
  if (type === 'application/json' || type.endsWith('+json')) return { text: type, json: true }
  return { text: [type, ...parameters.filter(Boolean).map(lowerName)].join(';'), json: false }
}

/**
 * Whether JSON of this media type is UTF-8. JSON has no other encoding (RFC 8259, section 8.1), but parsers obey a `charset` all the
 * same: in UTF-7 the same bytes are another document.
 *
 * @example
 * isUtf8Json('application/json; charset=utf-7') // false
 */
export function isUtf8Json(mediaType: string | undefined): boolean {
  if (mediaType === 'application/json' || mediaType === undefined) return true
  const parameters = mediaType.split(';').slice(1)
  return parameters.every((parameter) => !/charset/i.test(parameter) || UTF8.test(parameter))
}

/** As some clients write it, with quotes or without the hyphen. */
const UTF8 = /^\s*charset=(?:utf-?8|"utf-?8")\s*$/i

function lowerName(parameter: string): string {
  const equals = parameter.indexOf('=')
  return equals < 0 ? parameter : parameter.slice(0, equals).toLowerCase() + parameter.slice(equals)
}
