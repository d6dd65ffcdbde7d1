/** Locks on anything: leases with a fencing token that a late writer is told by. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { backoffMs, Deadline } from '../core/retry.ts'
import { checkName, scopeOf } from '../key/index.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import type { Engine } from '../onlyonce/engine.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import { positive } from '../onlyonce/requests.ts'
import type { Queryable } from '../store/contract.ts'
import { keepOpen } from '../store/keep-open.ts'
import type { Acquisition, LockId, LockStore } from '../store/locks.ts'
import { ASSERT_FENCE, checkTtl, type HoldBounds, Holding, type Lock } from './held.ts'

export type { Lock } from './held.ts'

export interface LockOptions {
  readonly account: string
  /** How long it is held without a sign of life. There is no lock without an end. */
  readonly ttlMs: number
  /**
   * How long to go on trying while another holder has it.
   *
   * @default there is one try
   */
  readonly waitMs?: number
  /**
   * Gives signs of life at a third of the ttl until it is released.
   *
   * @default true
   */
  readonly autoExtend?: boolean
  /**
   * After this long no more signs of life are given by themselves.
   *
   * @default 300_000
   */
  readonly holdMaxMs?: number
}

export interface Locks {
  /**
   * Gets the lock, or throws `lock_held` with `retryAfterMs`. There is no queue: the caller that tries at the right moment gets it.
   *
   * @example
   * const lock = await locks(once).acquire('ledger/2026-11', { account, ttlMs: 10_000, waitMs: 5_000 })
   * try {
   *   await once.transaction(call, async (tx) => {
   *     await assertFence(tx, lock)
   *     await closeLedger(tx)
   *   })
   * } finally {
   *   await lock.release()
   * }
   */
  acquire(resource: string, options: LockOptions): Promise<Lock>
}

const NAMES: OptionNames<LockOptions> = {
  account: true,
  ttlMs: true,
  waitMs: true,
  autoExtend: true,
  holdMaxMs: true,
}

/**
 * Locks in the database of `once`.
 *
 * @example
 * const lock = await locks(once).acquire('payout/42', { account, ttlMs: 10_000 })
 */
export function locks<Tx>(once: Onlyonce<Tx>): Locks {
  const engine = engineOf(once)
  const store = engine.store.locks
  if (store === undefined) {
    throw new OnlyonceError('option_invalid', { detail: 'This store has no locks. Use postgres(…).' })
  }
  return { acquire: async (resource, options) => await acquire(engine, store, resource, options) }
}

/**
 * Makes sure, inside your transaction, that no other holder gets the lock before that transaction has ended. Throws
 * `fence_stale` where the lock was lost, and the transaction cannot be committed then. Ask before you write, or after; it
 * counts from the moment at which you ask.
 *
 * @example
 * await client.query('BEGIN')
 * await assertFence(client, lock)
 * await client.query('UPDATE ledgers SET closed = true WHERE id = $1', [id])
 * await client.query('COMMIT')
 */
export async function assertFence(tx: Queryable, lock: Lock): Promise<void> {
  const holding = lock as Holding
  if (typeof holding?.[ASSERT_FENCE] !== 'function') {
    throw new OnlyonceError('option_invalid', { detail: 'Pass the lock that acquire() gave.' })
  }
  await keepOpen(tx, () => holding[ASSERT_FENCE](tx))
}

async function acquire<Tx>(
  engine: Engine<Tx>,
  store: LockStore,
  resource: string,
  options: LockOptions,
): Promise<Lock> {
  const { id, bounds, waitMs } = checkOptions(resource, options)
  engine.refuseWhenClosing()
  await engine.start()
  const deadline = new Deadline(waitMs)
  const holder = randomUUID()
  for (let tries = 0; ; tries += 1) {
    engine.refuseWhenClosing()
    // Counted from before it is asked for: the answer may be long on its way.
    const lease = new Deadline(bounds.ttlMs)
    const acquired = await ask(store, id, holder, bounds.ttlMs)
    if (acquired.got === 'lock') {
      return new Holding(store, { id, token: acquired.token, holder }, bounds, lease)
    }
    const { retryAfterMs } = acquired
    if (deadline.passed) throw new OnlyonceError('lock_held', { retryAfterMs })
    const pauseMs = backoffMs(tries, Math.random, POLLING)
    await sleep(Math.min(pauseMs, retryAfterMs, deadline.leftMs))
  }
}

/** An answer that was lost may have been a yes: a caller that asks again under the same id learns it. */
async function ask(store: LockStore, id: LockId, holder: string, ttlMs: number): Promise<Acquisition> {
  try {
    return await store.acquire(id, holder, ttlMs)
  } catch (error) {
    if (!(error instanceof OnlyonceError && error.code === 'store_unavailable')) throw error
    return await store.acquire(id, holder, ttlMs)
  }
}

function checkOptions(
  resource: string,
  options: LockOptions,
): { readonly id: LockId; readonly bounds: HoldBounds; readonly waitMs: number } {
  refuseUnknown('acquire()', options, NAMES)
  const { ttlMs, waitMs, autoExtend = true, holdMaxMs = LIMITS.lockHoldMaxMs } = options
  const { account } = scopeOf(options.account, 'lock')
  return {
    id: { account, resource: checkName(resource, 'resource_invalid') },
    bounds: { ttlMs: checkTtl(ttlMs), autoExtend, holdMaxMs: positive('holdMaxMs', holdMaxMs) },
    waitMs: waitMs === undefined ? 0 : positive('waitMs', waitMs),
  }
}

const POLLING = { minMs: LIMITS.backoffMinMs, maxMs: LIMITS.lockPollMaxMs }
