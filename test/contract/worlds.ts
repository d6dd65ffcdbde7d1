import { onTestFinished } from 'vitest'
import { type Onlyonce, type OnlyonceOptions, onlyonce } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { POOLER } from '../setup/pooler.ts'
import { makeCall, makeGate, SECRET, type Shop } from './shop.ts'

export type Given = Omit<Partial<OnlyonceOptions<never>>, 'store'>

/** One world of records, and doors to it, each of which is what another process would have. */
export interface World {
  open(options?: Given): Onlyonce<never>
  endLease(key: string): Promise<unknown>
  /** Lets the next look be due. */
  hurry(key: string): Promise<unknown>
}

export const closing = (once: Onlyonce<never>) => {
  onTestFinished(() => once.close({ maxMs: 100 }))
  return once
}

/** The owner stays silent, and so does its process: its heartbeat would keep the lease. */
export const LEASE_MS = 60_000

export const worldsOf = (shop: () => Shop): Readonly<Record<string, () => World>> => ({
  postgres: () => {
    const set = (what: string) => (key: string) =>
      shop().observer.query(`UPDATE onlyonce.records SET ${what} WHERE key = $1`, [key])
    return {
      open: (options = {}) => {
        const pool = shop().database.pool({ max: 4 })
        const store = postgres({ pool, pooler: POOLER }) as never
        return closing(onlyonce({ secret: SECRET, background: false, graceMs: 1, ...options, store }))
      },
      endLease: set(
        `lease_until = clock_timestamp() - interval '1 second', attempted_at = attempted_at - interval '1 minute'`,
      ),
      hurry: set('look_at = clock_timestamp()'),
    }
  },
  memory: () => {
    let now = 1_000_000
    const store = memory({ clock: () => now }) as never
    return {
      open: (options = {}) =>
        closing(onlyonce({ secret: SECRET, background: false, graceMs: 1, ...options, store })),
      endLease: async () => {
        now += LEASE_MS + 10
      },
      hurry: async () => {
        now += 100_000_000
      },
    }
  },
})

/** A handler whose process has stopped in the middle; `answer` lets it go on. */
export async function crash(world: World, options: Given = {}) {
  const owner = world.open(options)
  const call = { ...makeCall({ operation: 'orders.create' }), leaseMs: LEASE_MS }
  const gate = makeGate()
  let derivedKey = ''
  const told = owner
    .execute(call, async (context) => {
      derivedKey = context.derivedKey
      await gate.pass()
      return 'late'
    })
    .catch((error) => ({ code: error.code }))
  await gate.reached
  await world.endLease(call.key)
  return { call, told, answer: gate.open, derivedKey }
}
