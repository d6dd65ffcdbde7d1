import { createHash, randomBytes } from 'node:crypto'
import type { Mode } from '../gateway/index.ts'

/** What an API key says of itself, before anybody has looked whether it is one. */
export interface ParsedKey {
  readonly accountId: string
  readonly mode: Mode
  /** Whose things it opens: `acct_…:test` or `acct_…:live`. */
  readonly account: string
  readonly secretHash: Buffer
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 32 bytes in base 62, of which one can select all with two clicks. */
const SECRET_LENGTH = 43
const SECRET_BYTES = 32
const FORM = /^sk_(test|live)_(acct_[0-9a-f]{32})_([0-9A-Za-z]{43})$/

/**
 * A new API key. The account stands in it, so that its lookup is one of that account.
 *
 * @example
 * makeApiKey('acct_…', 'test') // 'sk_test_acct_…_…'
 */
export function makeApiKey(accountId: string, mode: Mode): string {
  let rest = BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`)
  let secret = ''
  for (let i = 0; i < SECRET_LENGTH; i += 1) {
    secret = DIGITS[Number(rest % 62n)] + secret
    rest /= 62n
  }
  return `sk_${mode}_${accountId}_${secret}`
}

/** Null for what no API key looks like: then nobody is asked. */
export function parseApiKey(text: string): ParsedKey | null {
  const [, mode, accountId, secret] = FORM.exec(text) ?? []
  if (mode === undefined || accountId === undefined || secret === undefined) return null
  return {
    accountId,
    mode: mode as Mode,
    account: `${accountId}:${mode}`,
    secretHash: createHash('sha256').update(secret).digest(),
  }
}

/** The credential in an Authorization header, whatever it is for; null where there is none. */
export function bearerOf(header: string | undefined): string | null {
  // Of a bounded length, so that nobody makes us look through a header of kilobytes.
  return /^Bearer ([!-~]{1,512})$/i.exec(header ?? '')?.[1] ?? null
}
