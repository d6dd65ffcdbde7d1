import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'

/** What Node's response takes as arguments, in all its forms. */

export function bytesOf(chunk: unknown, rest: readonly unknown[]): Buffer {
  if (typeof chunk === 'string') {
    const encoding = rest.find((one) => typeof one === 'string') as BufferEncoding | undefined
    return Buffer.from(chunk, encoding)
  }
  // A copy: the code that wrote it may use its buffer again.
  if (chunk instanceof Uint8Array) return Buffer.from(chunk)
  throw Object.assign(new TypeError('A response takes strings, Buffers and Uint8Arrays.'), {
    code: 'ERR_INVALID_ARG_TYPE',
  })
}

export function callbackOf(given: readonly unknown[]): ((error?: Error) => void) | undefined {
  return given.find((one) => typeof one === 'function') as ((error?: Error) => void) | undefined
}

/**
 * Does what `writeHead` does, short of sending: headers that are given to it are set like all others, so that they can
 * be read again.
 */
export function takeHead(response: ServerResponse, status: number, rest: readonly unknown[]): void {
  if (!Number.isInteger(status) || status < 100 || status > 999) {
    throw Object.assign(new RangeError(`Invalid status code: ${status}`), {
      code: 'ERR_HTTP_INVALID_STATUS_CODE',
    })
  }
  const [first, second] = rest
  response.statusCode = status
  if (typeof first === 'string') response.statusMessage = first
  const headers = typeof first === 'string' ? second : first
  if (headers === undefined || headers === null) return
  if (Array.isArray(headers)) setPairs(response, pairsOf(headers))
  else setAll(response, headers as OutgoingHttpHeaders)
}

function setAll(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const name of Object.keys(headers)) {
    const value = headers[name]
    if (value !== undefined) response.setHeader(name, value)
  }
}

/** A name that comes again in a list adds to what the list has said, and replaces what was set before. */
function setPairs(response: ServerResponse, pairs: readonly (readonly [string, unknown])[]): void {
  const said = new Set<string>()
  for (const [name, value] of pairs) {
    if (said.has(name.toLowerCase())) response.appendHeader(name, value as string)
    else response.setHeader(name, value as string)
    said.add(name.toLowerCase())
  }
}

/** A flat list, or a list of pairs. */
function pairsOf(list: readonly unknown[]): [string, unknown][] {
  if (list.every(Array.isArray)) return list as unknown as [string, unknown][]
  return Array.from({ length: Math.floor(list.length / 2) }, (_, i) => [`${list[2 * i]}`, list[2 * i + 1]])
}

/** The headers of a response. Asked for one by one: a copy of them all is an object of the slow kind. */
export function listOf(response: ServerResponse): [string, string][] {
  const list: [string, string][] = []
  for (const name of response.getHeaderNames()) {
    const value = response.getHeader(name)
    if (value === undefined) continue
    const lower = name.toLowerCase()
    if (!Array.isArray(value)) list.push([lower, `${value}`])
    else for (const one of value) list.push([lower, `${one}`])
  }
  return list
}
