import { ERRORS, OnlyonceError, type PlainCode } from '../core/errors.ts'
import { whyNoList } from '../core/options.ts'
import { scopeOf } from '../key/index.ts'
import { isNeverKept } from '../protect/never-kept.ts'
import type { Recovers } from '../protect/recover.ts'
import type { ResolvedPolicy, RoutePolicy } from './policy.ts'

/** Says what is wrong with an option, with the route that it is of. */
export type Refuse = (detail: string) => never

export function oneOf<T extends string>(refuse: Refuse, name: string, value: T, allowed: readonly T[]): T {
  return allowed.includes(value) ? value : refuse(`${name} is one of ${allowed.join(', ')}.`)
}

export function whole(refuse: Refuse, name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  return refuse(`${name} is a whole number, at least 1.`)
}

/** What a room without routes finds wrong with an option is told with the route that the option is of. */
export function namingRoute<T>(route: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if (!(error instanceof OnlyonceError)) throw error
    const { developer = '' } = ERRORS[error.code]
    const detail = `${route}: ${error.message.slice(developer.length).trim()}`
    throw new OnlyonceError(error.code as PlainCode, { detail, cause: error })
  }
}

/** Refuses a `recover` that would never be asked, or never be found. */
export function checkRecover(refuse: Refuse, policy: RoutePolicy): void {
  if (typeof policy.recover !== 'function') refuse('recover is a function.')
  if (policy.rerunnable === true) refuse('recover is never asked about a handler that is rerunnable.')
  if (policy.scope === 'account') refuse('recover is found by the operation, so scope cannot be account.')
}

/**
 * Makes the `recover` of a route known, where the route names its operation. One that `onlyonce()` was given for a route whose records
 * belong to the account as a whole would never be asked: such records do not name their operation.
 */
export function knowRecover(
  { operation, scope, recover }: ResolvedPolicy,
  recovers: Recovers,
  route: string,
): void {
  if (operation === null) return
  const name = scopeOf('any', operation).operation
  if (recover !== null) recovers.add(name, recover)
  if (scope !== 'account' || recovers.get(name) === undefined) return
  const detail = `${route}: recover of ${name} is found by the operation, so the scope of its route cannot be account.`
  throw new OnlyonceError('option_invalid', { detail })
}

function listed(refuse: Refuse, name: string, given: unknown): void {
  const why = whyNoList(name, given)
  if (why !== null) refuse(why)
}

export function methodsOf(refuse: Refuse, methods: readonly string[]): ReadonlySet<string> {
  listed(refuse, 'methods', methods)
  const unsafe = ['POST', 'PATCH', 'PUT', 'DELETE']
  const names = methods.map((method) => `${method}`.toUpperCase())
  if (names.length === 0 || names.some((name) => !unsafe.includes(name))) {
    refuse(`methods is a list of ${unsafe.join(', ')}.`)
  }
  return new Set(names)
}

export function headerNames(refuse: Refuse, option: string, given: string | readonly string[]): string[] {
  const mayBeOne = option !== 'replyHeaders'
  if (typeof given !== 'string' || !mayBeOne) listed(refuse, option, given)
  const names = typeof given === 'string' ? [given] : [...given]
  if (option === 'header' && names.length === 0) refuse('header names no header.')
  for (const name of names) {
    if (typeof name !== 'string' || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) {
      refuse(`${option} holds ${JSON.stringify(name)}, which is not the name of a header.`)
    }
    // A wait is counted from the reply that it came with.
    if (option === 'replyHeaders' && (isNeverKept(name) || /^retry-after$/i.test(name))) {
      refuse(`${name} is never stored or replayed.`)
    }
  }
  return names.map((name) => name.toLowerCase())
}
