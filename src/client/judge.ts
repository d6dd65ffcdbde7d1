import { TOLD } from './answers.generated.ts'
import type { Convention } from './conventions.ts'
import type { Evidence } from './options.ts'

/**
 * What the client does after an answer.
 *
 * - `return`: it is final. The caller gets it, unless an earlier attempt is in doubt.
 * - `retry`: the same request may be sent again.
 * - `wait`: another attempt is at work. The same request gets its outcome later.
 * - `stop`: no attempt helps any more.
 */
export type Next = 'return' | 'retry' | 'wait' | 'stop'

export interface Verdict {
  readonly next: Next
  readonly executed: Evidence
  readonly code: string | null
  readonly replayed: boolean
  /** Whether it is the outcome of the action itself, which settles every attempt before it. */
  readonly outcome: boolean
}

/** What an answer may say about itself in its body: a problem of onlyonce, or an error in Stripe's form. */
interface Said {
  readonly code?: unknown
  readonly type?: unknown
  /** PayPal's word for a code. */
  readonly name?: unknown
  readonly retryable?: unknown
  readonly executed?: unknown
  readonly error?: Said | null
}

/**
 * Judges one answer. What the server says in its body counts first, then the table of onlyonce for its code, then the rules of the IETF draft and
 * of Stripe for its status.
 */
export function judge(
  response: Pick<Response, 'status' | 'headers'>,
  text: string,
  api: Convention,
): Verdict {
  const { status, headers } = response
  const flag = (name: string | undefined) => (name === undefined ? null : headers.get(name))
  const replayed = flag(api.replayedHeader) === 'true'
  const said = saidIn(response, text)
  const code = textOf(said.code) ?? textOf(said.type) ?? textOf(said.name)
  const verdict = (next: Next, executed: Evidence, outcome = false): Verdict => ({
    next,
    executed,
    code,
    replayed,
    outcome,
  })
  // A status of 500 that is stored is sent again for ever, and does not tell how far the work had come.
  if (replayed && status >= 500) return verdict('stop', 'unknown')
  const evidence = evidenceOf(said.executed)
  const refused = evidence !== null || typeof said.retryable === 'boolean'
  // A decline is a result.
  if (replayed || (!refused && (status < 400 || status === 402))) {
    return verdict('return', status < 400 ? 'yes' : 'no', true)
  }
  const [byRetryable, byExecuted] = TOLD[code ?? ''] ?? meaningOf(status)
  const told = flag(api.retryHeader) ?? (api.retryOnlyIfTold ? 'false' : null)
  const retryable =
    typeof said.retryable === 'boolean' ? said.retryable : told === null ? byRetryable : told === 'true'
  // Where an answer asks for a retry that its status does not ask for, it may be about an attempt in progress.
  const guessed = retryable && !byRetryable ? 'unknown' : byExecuted
  const executed = isReused(said, status) ? 'unknown' : (evidence ?? guessed)
  if (retryable) return verdict([202, 409, 422].includes(status) ? 'wait' : 'retry', executed)
  return verdict(executed === 'no' || executed === 'not_by_this_request' ? 'return' : 'stop', executed)
}

/** Another request was executed under the key. For the caller's action that proves nothing. */
function isReused({ code, type, name }: Said, status: number): boolean {
  return (
    code === 'key_reused' ||
    name === 'DUPLICATE_REQUEST_ID' ||
    (type === 'idempotency_error' && status === 400)
  )
}

/** What a status means that comes without a word of onlyonce: whether the request may be sent again, and what the answer proves. */
export function meaningOf(status: number): readonly [retryable: boolean, executed: Evidence] {
  if (status === 425 || status === 429) return [true, 'not_by_this_request']
  if (status >= 500 || status === 408 || status === 409) return [true, 'unknown']
  return [false, 'not_by_this_request']
}

function saidIn({ status, headers }: Pick<Response, 'status' | 'headers'>, text: string): Said {
  if ((status < 400 && status !== 202) || !headers.get('content-type')?.includes('json')) return {}
  try {
    const body = JSON.parse(text) as Said
    return body.error ?? body
  } catch {
    return {}
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function evidenceOf(value: unknown): Evidence | null {
  return value === 'yes' || value === 'no' || value === 'not_by_this_request' || value === 'unknown'
    ? value
    : null
}
