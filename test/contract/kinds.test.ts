import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, type Onlyonce, operation, reply } from '../../src/index.ts'
import { completer, recoverer } from '../../src/workers/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, makeGate, openShop, type Shop } from './shop.ts'
import { crash, LEASE_MS, type World, worldsOf } from './worlds.ts'

let shop: Shop
let stopped = 0
const WORLDS = worldsOf(() => shop)

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

/** The same name of an operation, as the next deploy may have it. */
const NEXT = {
  'a plain handler': (once: Onlyonce<never>, call: object, ran: () => void) =>
    once.execute(call as never, async () => ran()),
  'a handler that may run again': (once: Onlyonce<never>, call: object, ran: () => void) =>
    once.execute({ ...call, rerunnable: true } as never, async () => ran()),
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
      await op.call('charged', { call: async () => ran() })
    }),
    call as never,
  )

describe.each(Object.keys(WORLDS))('what a vanished handler has begun, in %s', (name) => {
  const nexts = name === 'postgres' ? { ...NEXT, 'an operation': asOperation } : NEXT

  test.each(Object.entries(nexts))('is not run again by %s of the same name', async (_, next) => {
    const here: World = WORLDS[name]!()
    const { call } = await crash(here)
    const { leaseMs: _lease, ...plain } = call
    let runs = 0
    const met = await next(here.open({ graceMs: 3_600_000 }), plain as never, () => {
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
  // A call that is claimed gives the record a version, by which workers find operations. No step is durable.
  const before = operation(name, async (op) => {
    runs += 1
    await op.call('charged', {
      call: async () => {
        throw notExecuted()
      },
    })
  })
  await catchError(here.open().run(before, given as never))
  expect(runs).toBe(1)
  await vanish(here, {}, call)
  const worker = here.open({ operations: [before] as never, graceMs: 1 })
  await completer(worker, { graceMs: 0 } as never).runOnce()
  expect(runs).toBe(1)
  await recoverer(worker).runOnce()
  expect((await worker.explain(call)).state).toBe('parked')
})

describe('an operation that is retryable behind a durable step', () => {
  const inside = async (_: Onlyonce<never>, call: object, ran: () => void) => {
    const client = await beginCaller(shop)
    const met = await shop.open().within(client, call as never, async () => ran())
    await client.query('ROLLBACK')
    return met
  }
  const nexts = { ...NEXT, 'work within a transaction of the caller': inside }

  test.each(Object.entries(nexts))('is not run from the start by %s of the same name', async (_, next) => {
    const { once, call, finish, countSteps } = await stopBehindStep()
    let runs = 0
    for (const ran of [1, 2]) {
      const met = await next(once as never, call, () => {
        runs += ran
        throw notExecuted()
      })
      expect(met).toMatchObject({ outcome: 'unknown', why: expect.stringContaining('Steps of an operation') })
    }
    expect(runs).toBe(0)
    expect((await once.explain(call)).state).toBe('retryable')
    expect(await finish()).toMatchObject({ outcome: 'executed', status: 201 })
    expect(await countSteps()).toBe(1)
  })

  test('is a new one to all when it has expired', async () => {
    const { once, call } = await stopBehindStep()
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'expired', error_code = NULL, error_message = NULL WHERE key = $1`,
      [call.key],
    )
    for (const _ of [1, 2]) {
      const error = await catchError(
        once.execute(call, async () => {
          throw notExecuted()
        }),
      )
      expect(error).toMatchObject({ code: expect.stringMatching(/not_executed|not_applied/) })
    }
    expect(await once.execute(call, async () => 1)).toMatchObject({ outcome: 'executed' })
  })
})

async function stopBehindStep() {
  const once = shop.open()
  const call = makeCall({ operation: `orders.stopped_${++stopped}` })
  const { operation: name, ...given } = call
  let broken = true
  const pay = operation(name, async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, call.key))
    if (broken) throw new Error('stopped behind it')
    return reply(201, {})
  })
  await catchError(once.run(pay, given))
  const finish = () => {
    broken = false
    return once.run(pay, given)
  }
  return { once, call, finish, countSteps: () => shop.countEffects(call.key) }
}

/** A handler whose process stopped in the middle. */
async function vanish(here: World, more: object, call = makeCall({ operation: 'orders.create' })) {
  const gate = makeGate()
  here
    .open()
    .execute({ ...call, ...more, leaseMs: LEASE_MS } as never, async () => {
      await leaveEffect(shop.observer, call.key)
      await gate.pass()
    })
    .catch(() => {})
  await gate.reached
  await here.endLease(call.key)
  return { call }
}
