import { timingSafeEqual } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { nowMs } from './clock.ts'
import { schemeOf, type WebhookHeaders, type WebhookScheme } from './scheme.ts'
import { checkSecrets } from './secret.ts'

export interface VerifyOptions {
  readonly scheme: WebhookScheme
  readonly headers: WebhookHeaders
  /** The bytes that came in. Neither text nor anything parsed: those are not what was signed. */
  readonly body: Uint8Array
  /** Several while one is being rotated: any of them will do. */
  readonly secrets: string | readonly string[]
  /**
   * How old it may be, or how far ahead.
   *
   * @default 300_000
   */
  readonly toleranceMs?: number | undefined
  /**
   * Milliseconds since the epoch, for tests.
   *
   * @default the clock of the process
   */
  readonly now?: number | undefined
}

const NAMES: OptionNames<VerifyOptions> = {
  scheme: true,
  headers: true,
  body: true,
  secrets: true,
  toleranceMs: true,
  now: true,
}

/** A webhook whose sender is known. */
export interface VerifiedWebhook {
  /** The same on every attempt: what duplicates are told by. */
  readonly id: string
  /** When this attempt was signed, in milliseconds since the epoch. */
  readonly timestamp: number
  /** The bytes that were signed. */
  readonly payload: Buffer
}

/**
 * Checks who sent a webhook, and when, over the very bytes that came in. Throws an error of status 400 that says what is
 * wrong: `webhook_unsigned`, `webhook_timestamp_invalid`, `webhook_signature_invalid`, `webhook_too_old`, `webhook_too_new`.
 *
 * @example
 * const { id, payload } = verifyWebhook({ scheme: 'stripe', headers: request.headers, body: raw, secrets: [now, before] })
 */
export function verifyWebhook(options: VerifyOptions): VerifiedWebhook {
  refuseUnknown('verifyWebhook()', options, NAMES)
  const scheme = schemeOf(options.scheme)
  const secrets = checkSecrets(options.secrets)
  const { toleranceMs = LIMITS.webhookToleranceMs, now = nowMs() } = options
  const body = rawBytes(options.body)
  if (!(toleranceMs > 0)) refuse('toleranceMs must be more than nothing.')
  if (!Number.isFinite(now)) refuse('now is in milliseconds since the epoch.')

  const claimed = scheme.read(options.headers)
  if (claimed.signatures.length === 0) throw new OnlyonceError('webhook_unsigned')
  if (!TIMESTAMP.test(claimed.timestamp)) throw new OnlyonceError('webhook_timestamp_invalid')
  const expected = secrets.map((secret) => scheme.sign(claimed, body, secret))
  const known = expected.some((one) => claimed.signatures.some((given) => isSame(given, one)))
  if (!known) throw new OnlyonceError('webhook_signature_invalid')

  // Only now: what an unknown sender says about the time is of no interest.
  const timestamp = Number(claimed.timestamp) * 1_000
  if (timestamp < now - toleranceMs) throw new OnlyonceError('webhook_too_old')
  if (timestamp > now + toleranceMs) throw new OnlyonceError('webhook_too_new')
  return { id: claimed.id ?? idInside(body), timestamp, payload: body }
}

/** Nothing but digits: parseInt would take 1e9, 12abc and more for numbers. */
const TIMESTAMP = /^\d{1,12}$/

/** Takes as long for a wrong signature as for a right one. Lengths are no secret. */
function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** What is parsed or decoded before it is checked is not what was signed: bytes that are no UTF-8 all decode alike. */
export function rawBytes(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body
  if (!(body instanceof Uint8Array)) throw new OnlyonceError('webhook_body_not_raw')
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength)
}

function idInside(body: Buffer): string {
  try {
    const id = JSON.parse(body.toString('utf8'))?.id
    if (typeof id === 'string' && id !== '') return id
  } catch (cause) {
    throw new OnlyonceError('webhook_payload_invalid', { cause })
  }
  throw new OnlyonceError('webhook_payload_invalid')
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
