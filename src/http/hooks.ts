import { callGuarded } from '../core/thrown.ts'
import type { Outcome } from '../protect/transaction.ts'
import { failureOf } from '../record/failure.ts'
import type { RecordId } from '../record/index.ts'
import type { ResolvedPolicy } from './policy.ts'
import type { HttpReply } from './reply.ts'

/** What `onReplay` is told: the key whose stored reply is sent again, and the status of that reply. */
export interface ReplayTold extends RecordId {
  readonly status: number
}

/** What `onConflict` is told: why a request with a known key is answered without its reply. */
export interface ConflictTold extends ReplayTold {
  readonly code: 'in_progress' | 'key_reused' | 'outcome_pending' | 'parked'
}

export type Hooks = Pick<ResolvedPolicy, 'onReplay' | 'onConflict'>

/** The code of the problem that a client is told with each outcome. */
const CODES = new Map<Outcome['outcome'], ConflictTold['code']>([
  ['in_progress', 'in_progress'],
  ['key_reused', 'key_reused'],
  ['unknown', 'outcome_pending'],
  ['parked', 'parked'],
])

/**
 * Tells the route what a request with a known key is answered. No answer waits for a hook, and none changes with it: what a hook throws
 * or rejects with is a warning of the process, once for each route.
 */
export function tellHooks(
  { onReplay, onConflict }: Hooks,
  { outcome }: Pick<Outcome, 'outcome'>,
  { account, operation, key }: RecordId,
  { status }: HttpReply,
  failed: (error: unknown) => void,
): void {
  if (outcome === 'replayed' && onReplay !== null)
    callGuarded(() => onReplay({ account, operation, key, status }), failed)
  const code = CODES.get(outcome)
  if (code !== undefined && onConflict !== null)
    callGuarded(() => onConflict({ account, operation, key, status, code }), failed)
}

/** Warns of the first failure of a hook, and of no other: a hook that fails may fail with every request. */
export class FailedHooks {
  readonly #route: string
  #told = false

  constructor(route: string) {
    this.#route = route
  }

  readonly tell = (error: unknown): void => {
    if (this.#told) return
    this.#told = true
    const { code, message } = failureOf(error)
    process.emitWarning(`${this.#route}: onReplay or onConflict failed: ${code}: ${message}`, {
      type: 'OnlyonceHookWarning',
    })
  }
}
