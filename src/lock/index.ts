/** Locks on anything: leases with a fencing token that a late writer is told by. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Onlyonce } from '../door.ts'
import type { Engine } from '../engine.ts'
import { OnlyonceError } from '../errors.ts'
import { checkName, scopeOf } from '../key/index.ts'
import { LIMITS } from '../limits.ts'
import { engineOf } from '../onlyonce.ts'
import { type OptionNames, refuseUnknown } from '../options.ts'
import { positive } from '../requests.ts'
import { backoffMs, Deadline } from '../retry.ts'
import type { Queryable } from '../store/contract.ts'
import { keepOpen } from '../store/keep-open.ts'
import type { Acquisition, LockId, LockStore } from '../store/locks.ts'
import { ASSERT_FENCE, checkTtl, type HoldBounds, Holding, type Lock } from './held.ts'

export type { Lock } from './held.ts'

export interface LockOptions {
  readonly account: string
  /** How long it is held without a sign of life. There is no lock without an end. */
  readonly ttl_ms: number
  /** How long to go on trying while another holder has it. By default there is one try. */
  readonly wait_ms?: number
  /** Gives signs of life at a third of the ttl until it is released. On by default. */
  readonly auto_extend?: boolean
  /** After this long no more signs of life are given by themselves. */
  readonly hold_max_ms?: number
}

export interface Locks {
  /**
   * Gets the lock, or throws `lock_held` with `retry_after_ms`. There is no queue: the caller that tries at the right moment gets it.
   *
   * @example
   * const lock = await locks(once).acquire('ledger/2026-11', { account, ttl_ms: 10_000, wait_ms: 5_000 })
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
  ttl_ms: true,
  wait_ms: true,
  auto_extend: true,
  hold_max_ms: true,
}

/**
 * Locks in the database of `once`.
 *
 * @example
 * const lock = await locks(once).acquire('payout/42', { account, ttl_ms: 10_000 })
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
  const { id, bounds, wait_ms } = checkOptions(resource, options)
  engine.refuseWhenClosing()
  await engine.start()
  const deadline = new Deadline(wait_ms)
  const holder = randomUUID()
  for (let tries = 0; ; tries += 1) {
    engine.refuseWhenClosing()
    // Counted from before it is asked for: the answer may be long on its way.
    const lease = new Deadline(bounds.ttl_ms)
    const acquired = await ask(store, id, holder, bounds.ttl_ms)
    if (acquired.got === 'lock') {
      return new Holding(store, { id, token: acquired.token, holder }, bounds, lease)
    }
    const { retry_after_ms } = acquired
    if (deadline.passed) throw new OnlyonceError('lock_held', { retry_after_ms })
    const pause_ms = backoffMs(tries, Math.random, POLLING)
    await sleep(Math.min(pause_ms, retry_after_ms, deadline.left_ms))
  }
}

/** An answer that was lost may have been a yes: a caller that asks again under the same id learns it. */
async function ask(store: LockStore, id: LockId, holder: string, ttl_ms: number): Promise<Acquisition> {
  try {
    return await store.acquire(id, holder, ttl_ms)
  } catch (error) {
    if (!(error instanceof OnlyonceError && error.code === 'store_unavailable')) throw error
    return await store.acquire(id, holder, ttl_ms)
  }
}

function checkOptions(
  resource: string,
  options: LockOptions,
): { readonly id: LockId; readonly bounds: HoldBounds; readonly wait_ms: number } {
  refuseUnknown('acquire()', options, NAMES)
  const { ttl_ms, wait_ms, auto_extend = true, hold_max_ms = LIMITS.lock_hold_max_ms } = options
  const { account } = scopeOf(options.account, 'lock')
  return {
    id: { account, resource: checkName(resource, 'resource_invalid') },
    bounds: { ttl_ms: checkTtl(ttl_ms), auto_extend, hold_max_ms: positive('hold_max_ms', hold_max_ms) },
    wait_ms: wait_ms === undefined ? 0 : positive('wait_ms', wait_ms),
  }
}

const POLLING = { min_ms: LIMITS.backoff_min_ms, max_ms: LIMITS.lock_poll_max_ms }
