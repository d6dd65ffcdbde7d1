import { OnlyonceError } from '../../core/errors.ts'
import { isOfClass, memberOf } from '../../core/thrown.ts'
import { sqlState } from './classify.ts'

/** Codes by which a store says that it could not be used. */
export const AWAY_CODES: readonly string[] = [
  'store_unavailable',
  'store_misconfigured',
  'pool_exhausted',
  'overloaded',
]

const BY_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'unreachable',
  EAI_AGAIN: 'unreachable',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  ETIMEDOUT: 'silent',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  pool_exhausted: 'pool_exhausted',
  overloaded: 'overloaded',
  // PostgreSQL's code for a standby, and for a server that is switched over.
  '25006': 'read_only',
}

/** What pg says without a code. */
const BY_MESSAGE: readonly (readonly [RegExp, string])[] = [
  [/^timeout exceeded when trying/, 'pool_exhausted'],
  [/^(?:Query read timeout|timeout expired|Connection terminated due to connection timeout)/, 'silent'],
  [/^(?:Connection terminated|Client has encountered a connection error)/, 'reset'],
]

/**
 * Why a store could not be used, in a word: `refused`, `unreachable`, `silent`, `reset`, `pool_exhausted`, `overloaded`, `read_only`, `tls`,
 * the five characters of PostgreSQL, or `other`. Null for an error that does not say so. Never the driver's text, which may hold secrets.
 */
export function reasonOf(error: unknown): string | null {
  if (!(error instanceof OnlyonceError) || !AWAY_CODES.includes(error.code)) return null
  let found = 'other'
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && isOfClass(cause, Error); depth += 1) {
    const word = wordFor(cause)
    // A pool may be exhausted because the server is silent: the cause of an error of ours says more than its code.
    if (word !== null && !(cause instanceof OnlyonceError)) return word
    found = word ?? found
    // Where a name has several addresses, each has an error of its own.
    const several = memberOf(cause, 'errors')
    cause = Array.isArray(several) ? several[0] : memberOf(cause, 'cause')
  }
  return found
}

const CAUSES_MAX = 5

function wordFor(error: Error): string | null {
  const given = memberOf(error, 'code')
  const code = typeof given === 'string' ? given : ''
  // A Unix socket that is not there.
  if (code === 'ENOENT' && memberOf(error, 'syscall') === 'connect') return 'refused'
  if (Object.hasOwn(BY_CODE, code)) return BY_CODE[code]!
  if (/CERT|^ERR_(?:SSL|TLS)/.test(code)) return 'tls'
  return (
    sqlState(error) ?? BY_MESSAGE.find(([begin]) => begin.test(`${memberOf(error, 'message')}`))?.[1] ?? null
  )
}
