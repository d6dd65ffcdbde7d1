import { createHmac } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { readSecret } from './secret.ts'

/** `standard`: Standard Webhooks. `stripe`: the header Stripe-Signature. */
export type WebhookScheme = 'stripe' | 'standard'

/** Headers as Node.js, a framework or fetch has them. */
export type WebhookHeaders =
  | Readonly<Record<string, string | readonly string[] | undefined>>
  | { get(name: string): string | null }

/** What a webhook says about itself before anything is believed. */
export interface Claimed {
  /** Null where the scheme has it in the payload. */
  readonly id: string | null
  /** As it was sent, because it is signed as it was sent. */
  readonly timestamp: string
  readonly signatures: readonly string[]
}

interface Scheme {
  read(headers: WebhookHeaders): Claimed
  /** The signature, as text, as it stands in the header. */
  sign(claimed: Pick<Claimed, 'id' | 'timestamp'>, body: Uint8Array, secret: string): string
  write(
    claimed: Pick<Claimed, 'id' | 'timestamp'>,
    signatures: readonly string[],
  ): Readonly<Record<string, string>>
}

/**
 * What is signed is joined by dots. A body that begins like a timestamp could be cut at another one: the time that was signed becomes
 * a part of the id, and what the body began with the time that is judged.
 */
const HOLDS_TIMESTAMP = /\.\d{1,12}(?:\.|$)/
const CUT_ELSEWHERE = 'Its id holds what may be a timestamp behind a dot.'

const standard: Scheme = {
  read(headers) {
    const id = headerOf(headers, 'webhook-id')
    if (HOLDS_TIMESTAMP.test(id)) throw new OnlyonceError('webhook_unsigned', { detail: CUT_ELSEWHERE })
    const timestamp = headerOf(headers, 'webhook-timestamp')
    const given = headerOf(headers, 'webhook-signature')
    const signatures = given.split(' ').filter((one) => one.startsWith('v1,'))
    return { id, timestamp, signatures: signatures.map((one) => one.slice('v1,'.length)) }
  },
  sign({ id, timestamp }, body, secret) {
    return createHmac('sha256', readSecret(secret))
      .update(`${id}.${timestamp}.`)
      .update(body)
      .digest('base64')
  },
  write({ id, timestamp }, signatures) {
    return {
      'webhook-id': id!,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures.map((one) => `v1,${one}`).join(' '),
    }
  },
}

const stripe: Scheme = {
  read(headers) {
    const parts = headerOf(headers, 'stripe-signature').split(',')
    const valuesOf = (name: string) =>
      parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1))
    const [timestamp, second] = valuesOf('t')
    // With two of them one could be signed, and the other one judged.
    if (timestamp === undefined || second !== undefined) throw new OnlyonceError('webhook_unsigned')
    return { id: null, timestamp, signatures: valuesOf('v1') }
  },
  /** The secret as it is shown, prefix and all: Stripe does not decode it. */
  sign({ timestamp }, body, secret) {
    return createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')
  },
  write({ timestamp }, signatures) {
    return { 'stripe-signature': [`t=${timestamp}`, ...signatures.map((one) => `v1=${one}`)].join(',') }
  },
}

const SCHEMES: Readonly<Record<WebhookScheme, Scheme>> = { standard, stripe }

export function schemeOf(name: unknown): Scheme {
  if (typeof name === 'string' && Object.hasOwn(SCHEMES, name)) return SCHEMES[name as WebhookScheme]
  throw new OnlyonceError('option_invalid', {
    detail: `scheme must be one of ${Object.keys(SCHEMES).join(', ')}.`,
  })
}

/** Exactly one value; its name may be in any case. */
function headerOf(headers: WebhookHeaders, name: string): string {
  const value = findHeader(headers, name)
  if (typeof value === 'string' && value !== '') return value
  throw new OnlyonceError('webhook_unsigned', { detail: `The header ${name} is missing, or there twice.` })
}

function findHeader(headers: WebhookHeaders, name: string): unknown {
  if (typeof headers !== 'object' || headers === null) {
    throw new OnlyonceError('option_invalid', { detail: 'Pass the headers of the request.' })
  }
  if (typeof headers.get === 'function') return headers.get(name)
  const found = Object.entries(headers).filter(([given]) => given.toLowerCase() === name)
  const values = found.flatMap(([, value]) => value)
  return values.length === 1 ? values[0] : undefined
}
