import { expect } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import type { Onlyonce, Operation } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { addEvidence, reconciler } from '../../src/workers/index.ts'
import { type Shop, waitUntil } from '../contract/shop.ts'
import type { makeRecorder } from '../setup/recorder.ts'
import { makeTill, payment, payWith, type Till } from './till.ts'

export const SIGNED = { by: 'ann@example.com', why: 'the processor repeats a 500 of yesterday' }
export const VOID = { ...SIGNED, allowRetry: true, earlierCallIsVoid: true } as const
export const LOOKS = { reconcileAfterMs: [1] }

/** A processor that remembers what it answered: a key that has met a failure meets it for ever. */
export interface Memory extends Till {
  failing: boolean
  readonly asked: string[]
  readonly looked: string[]
  /** Called in the middle of a call that is carried out. */
  during: (key: string) => Promise<void>
}

export function makeMemory(changes: Partial<Pick<Till, 'idempotent' | 'lookup'>> = {}): Memory {
  const till = makeTill(changes)
  const failed = new Set<string>()
  const memory: Memory = Object.assign(till, {
    failing: true,
    asked: [] as string[],
    looked: [] as string[],
    during: async () => {},
  })
  const { charge, find } = till
  memory.charge = async (amount, key) => {
    memory.asked.push(key)
    if (memory.failing) failed.add(key)
    if (failed.has(key)) throw new Error('500, as I said before')
    const charged = await charge.call(till, amount, key)
    await memory.during(key)
    return charged
  }
  memory.find = async (key) => {
    memory.looked.push(key)
    return await find.call(till, key)
  }
  return memory
}

export interface Stuck {
  readonly once: Onlyonce<PostgresTx>
  readonly pay: Operation<{ amount: number }, { id: string; charge: string }>
  readonly call: ReturnType<typeof payment>
  readonly id: { account: string; operation: string; key: string }
  readonly keyOf: (generation: number) => string
}

/** A payment that is parked, because the processor remembers that it failed; the processor is well again. */
export async function parkedPayment(
  shop: Shop,
  name: string,
  till: Memory,
  options: Parameters<typeof payWith>[1] & { observe?: ReturnType<typeof makeRecorder> } = {},
): Promise<Stuck> {
  const { observe, ...rest } = options
  const pay = payWith(till, { name, ...rest })
  const call = payment()
  const once = shop.open({ ...LOOKS, operations: [pay], ...(observe && { observe }) })
  const stuck = {
    once,
    pay,
    call,
    id: { account: call.account, operation: name, key: call.key },
    keyOf: (generation: number) => derivedKey({ ...call, operation: name, step: 'charged', generation }),
  }
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  await lookUntilParked(stuck)
  till.failing = false
  return stuck
}

export async function lookUntilParked({ once, id }: Pick<Stuck, 'once' | 'id'>): Promise<void> {
  await waitUntil('it is parked', async () => {
    await reconciler(once).runOnce()
    return (await once.explain(id)).state === 'parked'
  })
}

export const tell = ({ once, call }: Stuck, key: string, id = 'ch_old') =>
  addEvidence(once, { account: call.account, key, result: { id, amount: 5 } })

export async function rowOf(shop: Shop, key: string) {
  const { rows } = await shop.observer.query('SELECT * FROM onlyonce.records WHERE key = $1', [key])
  return rows[0]
}
