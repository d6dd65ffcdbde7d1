import { type Onlyonce, OnlyonceError } from 'onlyonce'
import { locks } from 'onlyonce/locks'
import type { PostgresTx } from 'onlyonce/postgres'
import type { Worker } from 'onlyonce/workers'
import type pg from 'pg'
import { LIMITS } from '../limits.ts'
import { checkpoint } from './checkpoint.ts'

/** Not of any account: the one who writes checkpoints does it for all. */
const LOCK = { account: 'ledger', resource: 'checkpoint' }

/**
 * Writes down now and then what balances have come to. Two at once would do no harm, but one is enough: the others leave it
 * to whoever has begun.
 */
export function checkpointer({
  once,
  pool,
}: {
  readonly once: Onlyonce<PostgresTx>
  readonly pool: pg.Pool
}): Worker {
  return {
    name: 'ledger.checkpointer',
    everyMs: LIMITS.checkpointEveryMs,
    async runOnce() {
      const { account, resource } = LOCK
      const lock = await locks(once)
        .acquire(resource, { account, ttlMs: LIMITS.checkpointLockMs })
        .catch((error: unknown) => {
          if (error instanceof OnlyonceError && error.code === 'lock_held') return null
          throw error
        })
      if (lock === null) return { done: 0, more: false }
      try {
        const { written } = await checkpoint(pool)
        return { done: written, more: false }
      } finally {
        await lock.release().catch(() => {})
      }
    },
  }
}
