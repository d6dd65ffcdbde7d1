import { createHash } from 'node:crypto'
import { OnlyonceError } from '../core/errors.ts'
import { encodeParts, isWellFormed } from '../core/parts.ts'
import { checkKey } from './check.ts'
import { keyRules } from './rules.ts'
import { scopeOf } from './scope.ts'

/** Part of every derived key ever sent: a change would make gateways take retries for new payments. */
const DOMAIN = 'onlyonce.derived_key.v1'
/** The same for later generations. They have a part more, so they are in a domain of their own. */
const LATER_DOMAIN = 'onlyonce.derived_key.generation.v1'
/** The key has passed its own rules at the door; here only what no key may be is refused. */
const RULES = keyRules({ lengthMin: 1, allowSensitive: true })

/**
 * The key that a foreign call carries: the same on every attempt, in every process, after every deploy and
 * every rotation of secrets, hence unkeyed and without the operation's version.
 *
 * 43 characters of base64url: all 256 bits, because clients choose what is hashed, and short enough for
 * gateways that stop at 45 characters.
 *
 * `generation` is how many calls of the step operators have declared void. Each decision gives the step another key;
 * 0, the default, is the key that every step begins with.
 *
 * @example
 * derivedKey({ account: 'acct_1', operation: 'payments.create', key, step: 'charged' })
 */
export function derivedKey(of: {
  account: string
  operation: string
  key: string
  step: string
  generation?: number
}): string {
  const { account, operation } = scopeOf(of.account, of.operation)
  const key = checkKey(of.key, RULES)
  const step = checkStep(of.step)
  const { generation = 0 } = of
  if (!Number.isSafeInteger(generation) || generation < 0) {
    throw new OnlyonceError('option_invalid', { detail: 'generation is a whole number, at least 0.' })
  }
  const parts =
    generation === 0
      ? encodeParts(DOMAIN, account, operation, key, step)
      : encodeParts(LATER_DOMAIN, account, operation, key, step, `${generation}`)
  return createHash('sha256').update(parts).digest('base64url')
}

function checkStep(step: unknown): string {
  if (typeof step === 'string' && step.length > 0 && isWellFormed(step)) return step
  throw new OnlyonceError('option_invalid', { detail: 'A step has a name: a non-empty string.' })
}
