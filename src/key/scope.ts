import { OnlyonceError, type PlainCode } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isWellFormed } from '../core/parts.ts'

/**
 * Whose key it is. A key is looked up only inside its scope.
 *
 * @example
 * const scope: Scope = { account: 'acct_1', operation: 'payments.create' }
 */
export interface Scope {
  readonly account: string
  /** Without its version: a new version of an operation still knows the keys of the old one. */
  readonly operation: string
}

const VERSION = /@(\d+)$/
const VERSION_DIGITS_MAX = 9

/**
 * Checks an account and an operation and makes them a scope. There is no scope without an account.
 *
 * @example
 * scopeOf('acct_1', 'payments.create@2') // { account: 'acct_1', operation: 'payments.create' }
 */
export function scopeOf(account: unknown, operation: unknown): Scope {
  return { account: checkName(account, 'account_invalid'), operation: operationName(operation) }
}

/**
 * The name of an operation without its version, as it stands in scopes, fingerprints and derived keys.
 *
 * @example
 * operationName('payments.create@2') // 'payments.create'
 */
export function operationName(operation: unknown): string {
  const name = checkName(operation, 'operation_invalid')
  const version = VERSION.exec(name)
  if (version === null) return name
  if (version[1]!.length > VERSION_DIGITS_MAX) refuse('operation_invalid', 'Its version is too large.')
  const stripped = name.slice(0, version.index)
  if (stripped.trim() === '') refuse('operation_invalid', 'It is only a version.')
  // Stripping must be final: a@1@2 would name another operation each time it passed through here.
  if (VERSION.test(stripped)) refuse('operation_invalid', 'It has two versions.')
  return stripped
}

/**
 * The version that an operation's name carries, or null.
 *
 * @example
 * operationVersion('payments.create@2') // 2
 */
export function operationVersion(name: string): number | null {
  const stripped = operationName(name)
  return stripped.length === name.length ? null : Number(name.slice(stripped.length + 1))
}

/** A name that a caller gave: bounded, visible, and text that PostgreSQL can hold. Refused with the code that is given. */
export function checkName(name: unknown, code: PlainCode): string {
  if (typeof name !== 'string') return refuse(code, 'It is not a string.')
  if (name.length === 0) refuse(code, 'It is empty.')
  if (name.length > LIMITS.nameLengthMax) refuse(code, 'It is too long.')
  if (!isWellFormed(name)) refuse(code, 'It holds half of a surrogate pair.')
  let blank = true
  for (let i = 0; i < name.length; i++) {
    const char = name.charCodeAt(i)
    if (char < 0x20 || (char >= 0x7f && char <= 0x9f)) refuse(code, 'It holds a control character.')
    if (char !== 0x20) blank = false
  }
  if (blank) refuse(code, 'It holds only spaces.')
  return name
}

function refuse(code: PlainCode, detail: string): never {
  throw new OnlyonceError(code, { detail })
}
