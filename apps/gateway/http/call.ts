import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Plan } from '../faults.ts'
import type { SeenRequest, Target } from '../wire.ts'
import { Failure, invalidRequest } from './failure.ts'
import type { ParameterMap } from './form.ts'

/** Larger than any request that means something here. */
const BODY_MAX_BYTES = 65_536
const KEY_MAX = 255

/** A request on its way through. */
export interface Call {
  readonly response: ServerResponse
  /** Its own name, as in the header of the answer. */
  readonly request: string
  readonly target: Target
  readonly path: string
  readonly form: ParameterMap
  readonly key: string | null
  /** What is told of it later; null without a key. */
  readonly seen: SeenRequest | null
  /** Resolves when it is written down that it arrived. */
  readonly arrived: Promise<void> | null
  /** What it meets. */
  readonly plan: Plan
}

/** With events: reading with `for await` costs a benchmark a tenth of its rate. */
export function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      sizeBytes += chunk.length
      if (sizeBytes > BODY_MAX_BYTES) {
        const message = 'The body is too large.'
        reject(new Failure(413, { type: 'invalid_request_error', message }))
        request.removeAllListeners('data').resume()
      }
    })
    request.on('end', () => {
      resolve(chunks.length === 1 ? chunks[0]!.toString() : Buffer.concat(chunks).toString())
    })
    request.on('error', reject)
  })
}

/** Reads get no key: asking twice changes nothing. */
export function readKey({ method, headers }: IncomingMessage): string | null {
  const key = headers['idempotency-key']
  if (method !== 'POST' || typeof key !== 'string' || key === '') return null
  if (key.length > KEY_MAX) throw invalidRequest(`Idempotency keys have at most ${KEY_MAX} characters.`)
  return key
}

/** Bearer, or Basic with the key as the name of the user, as `curl -u` sends it. */
export function checkApiKey({ headers }: IncomingMessage, apiKey: string): void {
  const { authorization = '' } = headers
  const [scheme = '', credential = ''] = authorization.split(' ')
  const sent =
    scheme.toLowerCase() === 'basic'
      ? Buffer.from(credential, 'base64').toString().split(':')[0]!
      : scheme.toLowerCase() === 'bearer'
        ? credential
        : ''
  if (sent === apiKey) return
  const message =
    sent === ''
      ? 'You did not provide an API key. Send it as: Authorization: Bearer sk_test_…'
      : `Invalid API Key provided: ${sent.slice(0, 8)}${'*'.repeat(8)}`
  throw new Failure(401, { type: 'invalid_request_error', message })
}
