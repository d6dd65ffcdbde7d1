/** Erases what an account has stored. Its keys stay used: a tombstone under each of them keeps it from ever running again. */
import type { Pool } from 'pg'
import { checkKey, checkName, operationName } from '../key/index.ts'
import { signatureOf } from '../key/signature.ts'
import {
  countLeftovers,
  countToErase,
  type ErasedPage,
  type ErasureCount,
  type ErasureScope,
  eraseBeside,
  erasePage,
  type Leftovers,
} from '../store/postgres/erasure.ts'

export interface EraseRequest {
  readonly pool: Pool
  readonly schema: string
  readonly scope: ErasureScope
  readonly by: string
  readonly why: string
  readonly signal: AbortSignal
  readonly onProgress: (count: number) => void
}

export interface Erased {
  /** Records that are tombstones now. */
  readonly erased: number
  /** Other rows that were removed: evidence, webhooks, done jobs. */
  readonly removed: number
  /** Records that are left, because they are not finished. */
  readonly left: ErasureCount
  /** Null where not the whole account was asked for. */
  readonly beside: Leftovers | null
}

/** Checks whose records are meant. */
export function erasureScope(account: string, operation?: string, key?: string): ErasureScope {
  return {
    account: checkName(account, 'account_invalid'),
    operation: operation === undefined ? null : operationName(operation),
    key: key === undefined ? null : checkKey(key, { lengthMin: 1, allowSensitive: true }),
  }
}

/**
 * Goes through the records of a scope, in bounded pages, each of them a commit. What was erased stays so where it ends in the middle, and
 * another run goes on. What is written meanwhile is not seen behind its page: close the account first.
 *
 * @example
 * const { erased, left } = await eraseAll({ pool, schema: 'onlyonce', scope, by: 'ann', why: 'request 4711', signal, onProgress })
 */
export async function eraseAll(request: EraseRequest): Promise<Erased> {
  const { pool, schema, scope, signal } = request
  const step = { schema, scope, ...signatureOf(request) }
  let [erased, removed] = [0, 0]
  let after: ErasedPage['after'] = null
  do {
    if (signal.aborted) break
    const page: ErasedPage = await erasePage(pool, step, after)
    erased += page.erased
    request.onProgress(page.erased)
    after = page.after
  } while (after !== null)
  const whole = scope.operation === null && scope.key === null
  for (let count = 1; whole && count > 0 && !signal.aborted; removed += count) {
    count = await eraseBeside(pool, schema, scope.account)
  }
  const left = await countToErase(pool, schema, scope)
  return { erased, removed, left, beside: whole ? await countLeftovers(pool, schema, scope.account) : null }
}
