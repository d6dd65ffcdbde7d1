import { beforeAll, describe, expect, test } from 'vitest'
import { completer, type Onlyonce, operation, recoverer } from '../../src/index.ts'
import { catchError, leaveEffect, makeCall, makeGate, openShop, type Shop } from './shop.ts'
import { crash, LEASE_MS, type World, worldsOf } from './worlds.ts'

let shop: Shop
const WORLDS = worldsOf(() => shop)

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

/** The same name of an operation, as the next deploy may have it. */
const NEXT = {
  'a plain handler': (once: Onlyonce<never>, call: object, ran: () => void) =>
    once.handler(call as never, async () => ran()),
  'a handler that may run again': (once: Onlyonce<never>, call: object, ran: () => void) =>
    once.handler({ ...call, rerunnable: true } as never, async () => ran()),
  'a transaction': (once: Onlyonce<never>, call: object, ran: () => void) =>
    once.transaction(call as never, async () => ran()),
} as const

const asOperation = (
  once: Onlyonce<never>,
  { operation: name, ...call }: { operation: string },
  ran: () => void,
) =>
  once.run(
    operation(name, async (op) => {
      await op.foreign('charged', { call: async () => ran() })
    }),
    call as never,
  )

describe.each(Object.keys(WORLDS))('what a vanished handler has begun, in %s', (name) => {
  const nexts = name === 'postgres' ? { ...NEXT, 'an operation': asOperation } : NEXT

  test.each(Object.entries(nexts))('is not run again by %s of the same name', async (_, next) => {
    const here: World = WORLDS[name]!()
    const { call } = await crash(here)
    const { lease_ms: _lease, ...plain } = call
    let runs = 0
    const met = await next(here.open({ grace_ms: 3_600_000 }), plain as never, () => {
      runs += 1
    })
    expect({ met, runs }).toMatchObject({ met: { outcome: 'unknown' }, runs: 0 })
  })
})

test('what a handler that may run again has begun is run again by one that may, and not by an operation', async () => {
  const here = WORLDS.postgres!()
  const { call } = await vanish(here, { rerunnable: true })
  let runs = 0
  const ran = () => {
    runs += 1
  }
  expect(await asOperation(here.open(), call, ran)).toMatchObject({ outcome: 'unknown' })
  expect(runs).toBe(0)
  await NEXT['a handler that may run again'](here.open(), call, ran)
  expect(runs).toBe(1)
})

test('a handler that follows an operation is looked after as a handler, and no worker goes on with it as an operation', async () => {
  const here = WORLDS.postgres!()
  const call = makeCall({ operation: 'orders.changed' })
  const { operation: name, ...given } = call
  let runs = 0
  // A step that is durable gives the record a version, by which workers find operations.
  const before = operation(name, async (op) => {
    await op.atomic('begun', async () => 1)
    runs += 1
    throw new Error('stopped behind it')
  })
  await catchError(here.open().run(before, given as never))
  expect(runs).toBe(1)
  await vanish(here, {}, call)
  const worker = here.open({ operations: [before] as never, grace_ms: 1 })
  await completer(worker, { grace_ms: 0 } as never).runOnce()
  expect(runs).toBe(1)
  await recoverer(worker).runOnce()
  expect((await worker.explain(call)).state).toBe('parked')
})

/** A handler whose process stopped in the middle. */
async function vanish(here: World, more: object, call = makeCall({ operation: 'orders.create' })) {
  const gate = makeGate()
  here
    .open()
    .handler({ ...call, ...more, lease_ms: LEASE_MS } as never, async () => {
      await leaveEffect(shop.observer, call.key)
      await gate.pass()
    })
    .catch(() => {})
  await gate.reached
  await here.endLease(call.key)
  return { call }
}
