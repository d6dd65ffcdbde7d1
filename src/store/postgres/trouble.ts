import { OnlyonceError } from '../../core/errors.ts'
import { isOfClass, memberOf } from '../../core/thrown.ts'
import { sqlState } from './classify.ts'

/** Why the database cannot be used, in a sentence of ours: what a driver says may hold names, addresses and passwords. */
interface Trouble {
  readonly detail: string
  /** Only a person can change it: trying again does not help. */
  readonly lasting: boolean
}

const lasting = (detail: string): Trouble => ({ detail, lasting: true })
const passing = (detail: string): Trouble => ({ detail, lasting: false })

const REFUSED_USER = lasting(
  'The database refuses this user or its password, or lets it not in from this address.',
)
const TLS = lasting(
  'TLS to the database fails: the two sides do not agree, or one of them does not take the certificate of the other.',
)
const NO_TLS = lasting(
  'The database speaks no TLS, and the settings ask for it. Turn TLS on at the server, or off in the settings.',
)
const UNTRUSTED = lasting(
  'The certificate of the database is not trusted: it is self-signed, or signed by an authority that this process does not know. Give that authority as ssl.ca, or sslrootcert.',
)
const WRONG_HOST = lasting(
  'The certificate of the database is for another host. Connect by a name that it holds, or give the server another certificate.',
)
const OUT_OF_DATE = lasting(
  'The certificate of the database has expired, or is not valid yet. Renew it, and compare the clocks of both hosts.',
)
const NO_HOST = passing('The name of the database host cannot be resolved, or the host cannot be reached.')
const LATE = passing('The database did not answer in time.')

const BY_CODE: Readonly<Record<string, Trouble>> = {
  '28000': REFUSED_USER,
  '28P01': REFUSED_USER,
  '3D000': lasting('There is no such database on the server.'),
  '42501': lasting(
    'The user lacks a right in the schema. Grant it, or apply the migrations as a user who has it.',
  ),
  '53300': passing('The database has no connection left for this user.'),
  '57P03': passing('The database is starting up or shutting down.'),
  ECONNREFUSED: passing('Nothing listens at the host and port of the database.'),
  ENOTFOUND: NO_HOST,
  EAI_AGAIN: NO_HOST,
  EHOSTUNREACH: NO_HOST,
  ENETUNREACH: NO_HOST,
  ETIMEDOUT: LATE,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  CERT_UNTRUSTED: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: WRONG_HOST,
  CERT_HAS_EXPIRED: OUT_OF_DATE,
  CERT_NOT_YET_VALID: OUT_OF_DATE,
}

/** What pg says without a code, by how it begins. */
const BY_MESSAGE: readonly (readonly [RegExp, Trouble])[] = [
  [/^The server does not support SSL/, NO_TLS],
  [/client password must be a/, lasting('The database asks for a password, and none was given.')],
  [/^(?:timeout exceeded when trying|Connection terminated due to connection timeout|timeout expired)/, LATE],
]

/** A sentence about the first cause that is known, with its code, or undefined. */
export function troubleDetail(error: unknown): string | undefined {
  return known(error)?.detail
}

/**
 * What a start is told. There nothing has worked before, so what only a person can change is no passing state: it is
 * `store_misconfigured`, and not "try again". Later a refused password may be one that is being rotated.
 */
export function startTrouble(error: unknown): unknown {
  const told = error instanceof OnlyonceError && error.code === 'store_misconfigured'
  const trouble = told ? null : known(error)
  if (trouble === null || !trouble.lasting) return error
  return new OnlyonceError('store_misconfigured', { detail: trouble.detail, cause: error })
}

function known(error: unknown): Trouble | null {
  let cause: unknown = error
  for (let depth = 0; depth < CAUSES_MAX && isOfClass(cause, Error); depth += 1) {
    const found = find(cause)
    if (found !== null) return found
    // Where a name has several addresses, each has an error of its own.
    const several = memberOf(cause, 'errors')
    cause = Array.isArray(several) ? several[0] : memberOf(cause, 'cause')
  }
  return null
}

const CAUSES_MAX = 5

function find(error: Error): Trouble | null {
  const code = memberOf(error, 'code')
  const given = sqlState(error) ?? (typeof code === 'string' ? code : '')
  if (given === 'ENOENT' && memberOf(error, 'syscall') !== 'connect') {
    return lasting('The files of the migrations are missing from this installation (ENOENT).')
  }
  const trouble = Object.hasOwn(BY_CODE, given)
    ? BY_CODE[given]!
    : /CERT|^ERR_(?:SSL|TLS)/.test(given)
      ? TLS
      : null
  if (trouble !== null) return { ...trouble, detail: `${trouble.detail.slice(0, -1)} (${given}).` }
  return BY_MESSAGE.find(([begin]) => begin.test(`${memberOf(error, 'message')}`))?.[1] ?? null
}
