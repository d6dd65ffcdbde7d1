import { OnlyonceError } from 'onlyonce'
import { assertFence, type Lock, locks } from 'onlyonce/locks'
import type { Worker } from 'onlyonce/workers'
import type { Gateway } from '../gateway/index.ts'
import { LIMITS } from '../limits.ts'
import type { Service } from '../service.ts'
import { booksOf, reconcile } from './reconcile.ts'
import { countsOf } from './render.ts'
import { DAYS, NOW } from './sql.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

type Doors = Pick<Service, 'pool' | 'once' | 'gateways' | 'log'> & Partial<Pick<Service, 'counts'>>

/**
 * Compares each day with the processors' books, several times as it gets older. Any number of processes may: a lock says who does
 * it, and the kept run says that it was done. A day that failed is tried again, and keeps no other from its turn.
 */
export function bookReconciler(doors: Doors, options: { readonly now?: () => Promise<Date> } = {}): Worker {
  const { pool, gateways } = doors
  const { now = async () => new Date((await pool.query(NOW)).rows[0].now) } = options
  return {
    name: 'payments.book_reconciler',
    everyMs: LIMITS.reconcileLookEveryMs,
    async runOnce() {
      const at = await now()
      const open = await Promise.all(
        Object.values(gateways).map(async (gateway: Gateway) =>
          (await dueDays(doors, gateway, at)).map((day) => ({ gateway, day })),
        ),
      )
      const due = open.flat()
      const failures: unknown[] = []
      for (const [i, { gateway, day }] of due.entries()) {
        try {
          // One day is one batch: whoever wants to stop does not wait for the others.
          if (await reconcileOnce(doors, gateway, day, now)) return { done: 1, more: i + 1 < due.length }
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
      return { done: 0, more: false }
    },
  }
}

/** Days that nobody has compared since the last moment at which they were due, the newest first. */
async function dueDays({ pool }: Doors, gateway: Gateway, now: Date): Promise<readonly Date[]> {
  const today = Math.floor(now.getTime() / DAY_MS) * DAY_MS
  const days = Array.from({ length: LIMITS.reconcileDaysBack }, (_, i) => new Date(today - (i + 1) * DAY_MS))
  const values = [booksOf(gateway), days.map((day) => day.toISOString()), gateway.mode]
  const { rows } = await pool.query(DAYS, values)
  return rows
    .filter(({ day, read_at: readAt }) =>
      isDue(Date.parse(day), readAt === null ? null : Date.parse(readAt), now),
    )
    .map(({ day }) => new Date(day))
}

function isDue(day: number, readAt: number | null, now: Date): boolean {
  const looks = LIMITS.reconcileAfterHours.map((hours) => day + DAY_MS + hours * HOUR_MS)
  const last = looks.filter((look) => look <= now.getTime()).at(-1)
  return last !== undefined && (readAt === null || readAt < last)
}

/** False where somebody else does it, or has done it meanwhile. */
async function reconcileOnce(
  doors: Doors,
  gateway: Gateway,
  day: Date,
  now: () => Promise<Date>,
): Promise<boolean> {
  const lock = await lockDay(doors, gateway, day)
  if (lock === null) return false
  try {
    const at = await now()
    // Who had the lock before may have done it.
    const stillDue = (await dueDays(doors, gateway, at)).some((due) => due.getTime() === day.getTime())
    if (!stillDue) return false
    const { books, comparison, fresh } = await reconcile(doors, gateway, {
      from: day,
      to: new Date(day.getTime() + DAY_MS),
      now: at,
      signal: lock.lost,
      guard: (tx) => assertFence(tx, lock),
    })
    const found = { books, day: day.toISOString().slice(0, 10), fresh, ...countsOf(comparison) }
    doors.counts?.booksDiffer(books, fresh)
    if (fresh > 0) doors.log.warn(found, 'the books differ from those of the processor')
    else doors.log.info(found, 'the books were compared with those of the processor')
    return true
  } finally {
    // One that cannot be given back runs out.
    await lock.release().catch(() => {})
  }
}

async function lockDay({ once }: Doors, gateway: Gateway, day: Date): Promise<Lock | null> {
  try {
    return await locks(once).acquire(`reconciliation/${day.toISOString().slice(0, 10)}`, {
      account: booksOf(gateway),
      ttlMs: LIMITS.reconcileLockMs,
      holdMaxMs: LIMITS.reconcileHoldMaxMs,
    })
  } catch (error) {
    if (error instanceof OnlyonceError && error.code === 'lock_held') return null
    throw error
  }
}
