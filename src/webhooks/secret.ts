import { randomBytes } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'

const PREFIX = 'whsec_'
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** The bytes of a new secret. */
export function newSecret(): Buffer {
  return randomBytes(LIMITS.webhookSecretBytes)
}

/** A secret as Standard Webhooks shows it. */
export function showSecret(bytes: Uint8Array): string {
  return `${PREFIX}${Buffer.from(bytes).toString('base64')}`
}

/** The bytes behind a secret of Standard Webhooks, with its prefix or without. */
export function readSecret(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret
  // Node's own decoder takes anything, and a secret cut short would sign and verify nothing, without a word.
  if (text === '' || !BASE64.test(text)) {
    throw new OnlyonceError('webhook_secret_invalid', { detail: 'It is not whsec_ and base64.' })
  }
  return Buffer.from(text, 'base64')
}

/** One secret or several, as they were given. */
export function checkSecrets(secrets: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(secrets) ? secrets : [secrets]
  if (list.length === 0 || list.length > LIMITS.webhookSecretsMax) {
    throw new OnlyonceError('webhook_secret_invalid', {
      detail: `Give one to ${LIMITS.webhookSecretsMax} of them.`,
    })
  }
  const wrong = list.some((secret) => typeof secret !== 'string' || secret.trim() === '')
  if (wrong) throw new OnlyonceError('webhook_secret_invalid', { detail: 'It is no text, or empty.' })
  return list as readonly string[]
}
