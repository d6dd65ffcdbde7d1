import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { LIMITS } from '../core/limits.ts'
import { checkUrl, pinnedLookup, resolveTarget, type TargetRules } from './target.ts'

export interface Post {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  readonly timeoutMs: number
}

/**
 * Posts once, and gives the status of the answer. No redirect is followed, and nothing of the answer's body is read: it may be endless.
 * The address is judged again, because rules change and names mean something else today.
 */
export async function post(
  { url: given, headers, body, timeoutMs }: Post,
  rules: TargetRules,
): Promise<number> {
  const stop = new AbortController()
  const late = failed('timeout', `There was no answer within ${timeoutMs} ms.`)
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(late)
      stop.abort(late)
    }, timeoutMs)
  })
  try {
    const url = checkUrl(given, rules)
    // A resolver cannot be stopped; it is not waited for either.
    const addresses = await Promise.race([resolveTarget(url, rules), timeout])
    return await Promise.race([send(url, addresses, headers, body, stop.signal), timeout])
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
}

function send(
  url: URL,
  addresses: readonly string[],
  headers: Post['headers'],
  body: Buffer,
  signal: AbortSignal,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest : httpRequest
    const sent = request(url, {
      method: 'POST',
      lookup: pinnedLookup(addresses),
      // A connection of its own: none that was made to an address which would not be judged again.
      agent: false,
      signal,
      headers: { ...headers, 'content-length': `${body.length}`, connection: 'close' },
    })
    // Where all of several addresses failed, the first one says why; what holds them together says nothing.
    sent.on('error', (error) => reject(error instanceof AggregateError ? error.errors[0] : error))
    let interim = 0
    sent.on('information', () => {
      interim += 1
      if (interim > LIMITS.webhookInterimMax)
        sent.destroy(failed('no_answer', 'It sent only interim answers.'))
    })
    // Also where there was no error to tell, for example after an answer of 101.
    sent.on('close', () => reject(failed('no_answer', 'The connection was closed before an answer came.')))
    sent.on('response', (response: IncomingMessage) => {
      response.on('error', () => {})
      resolve(response.statusCode!)
      response.destroy()
    })
    sent.end(body)
  })
}

/** With a code that owners of endpoints can go by, as the errors of Node.js have one. */
function failed(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
