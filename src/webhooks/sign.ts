import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { nowMs } from './clock.ts'
import { schemeOf, type WebhookScheme } from './scheme.ts'
import { checkSecrets } from './secret.ts'
import { rawBytes } from './verify.ts'

export interface SignOptions {
  readonly scheme: WebhookScheme
  /** The bytes that will be sent. */
  readonly body: Uint8Array
  /** With several of them there are several signatures, so that either secret verifies it. */
  readonly secrets: string | readonly string[]
  /**
   * Of the message, the same on every attempt. `stripe` has it inside the body.
   *
   * @default none
   */
  readonly id?: string | undefined
  /**
   * Milliseconds since the epoch; signed and sent in whole seconds.
   *
   * @default now
   */
  readonly timestamp?: number | undefined
}

const NAMES: OptionNames<SignOptions> = {
  scheme: true,
  body: true,
  secrets: true,
  id: true,
  timestamp: true,
}

/** What an id may be: it stands in a header, and what is signed is joined by dots. */
const ID = /^[\x21-\x2d\x2f-\x7e]{1,255}$/

/**
 * The headers that tell a receiver who sent these bytes, and when.
 *
 * @example
 * const headers = signWebhook({ scheme: 'standard', id: 'msg_1', body, secrets: 'whsec_…' })
 */
export function signWebhook(options: SignOptions): Readonly<Record<string, string>> {
  refuseUnknown('signWebhook()', options, NAMES)
  const scheme = schemeOf(options.scheme)
  const secrets = checkSecrets(options.secrets)
  const body = rawBytes(options.body)
  const { timestamp: atMs = nowMs(), id = null } = options
  if (!Number.isFinite(atMs) || atMs < 0) refuse('timestamp is in milliseconds since the epoch.')
  if (options.scheme === 'standard' && (id === null || !ID.test(id))) {
    refuse('A webhook needs an id of 1 to 255 visible ASCII characters, without a dot.')
  }
  const claimed = { id, timestamp: `${Math.floor(atMs / 1_000)}` }
  return scheme.write(
    claimed,
    secrets.map((secret) => scheme.sign(claimed, body, secret)),
  )
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
