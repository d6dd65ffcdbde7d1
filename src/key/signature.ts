import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isWellFormed } from '../core/parts.ts'
import { checkName, maskCardNumbers } from './index.ts'

/** Who says something, why, and upon which fence. */
interface Signed {
  readonly by: string
  readonly why: string
  readonly fence?: number
}

/** Both are shown to people who may not see card numbers. */
export function signatureOf({ by, why, fence }: Signed): Signed {
  const who = maskCardNumbers(checkName(by, 'decision_invalid'))
  if (typeof why !== 'string' || why.trim() === '') refuse('Say why.')
  // PostgreSQL's text holds neither.
  if (!isWellFormed(why) || why.includes('\0')) refuse('Its why holds what is not text.')
  const reason = maskCardNumbers(why)
  if (reason.length > LIMITS.whyLengthMax) refuse('Its why is too long.')
  if (fence !== undefined && !Number.isSafeInteger(fence)) refuse('Its fence is not a number.')
  return { by: who, why: reason, ...(fence === undefined ? {} : { fence }) }
}

function refuse(detail: string): never {
  throw new OnlyonceError('decision_invalid', { detail })
}
