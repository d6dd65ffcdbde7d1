import { setImmediate } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { onlyonce, type Queryable, type Store } from '../../src/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { makeRecorder } from '../setup/recorder.ts'
import {
  beginCaller,
  catchError,
  makeBarrier,
  makeCall,
  makeGate,
  openProxy,
  openShop,
  SECRET,
  type Shop,
  waitUntil,
} from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

test('a lost lease is told once, by whoever notices first', async () => {
  const [heard, otherHeard] = [makeRecorder(), makeRecorder()]
  const [one, other] = [shop.open({ observe: heard }), shop.open({ observe: otherHeard })]
  const call = { ...makeCall(), leaseMs: 150, rerunnable: true }
  const first = one.execute(call, async ({ signal }) => {
    // A beat may come between the end of the lease and the claim: then once more.
    await waitUntil('it was taken over', async () => {
      await shop.observer.query('UPDATE onlyonce.records SET lease_until = now() WHERE key = $1', [call.key])
      return (await other.execute(call, async () => 'in time')).outcome === 'executed'
    })
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return 'late'
  })
  expect(await catchError(first)).toMatchObject({ code: 'lease_lost' })
  expect(heard.story(call.key)).toEqual([
    'call_started',
    'reserved created',
    'lease_lost',
    'call_ended failed lease_lost',
  ])
  expect(heard.of('lease_lost')[0]?.fence).toBe(1)
  expect(otherHeard.story(call.key).slice(-4)).toEqual([
    'call_started',
    'zombie_key',
    'reserved failed_retry',
    'call_ended executed',
  ])
})

test('a heartbeat that meets our own completed record is no lost lease', async () => {
  const heard = makeRecorder()
  const beat = makeGate()
  const store = memory()
  // The answer to complete() is slow: a beat overtakes it.
  const slow: Store<Queryable> = bindTo(store, {
    async complete(...given) {
      await store.complete(...given)
      await beat.reached
      await setImmediate()
    },
    async extend(...given) {
      await store.extend(...given).catch((error) => {
        void beat.pass()
        throw error
      })
    },
  })
  const once = onlyonce({ store: slow, secret: SECRET, observe: heard })
  const call = { ...makeCall(), leaseMs: 3 }
  expect(await once.execute(call, async () => 1)).toEqual({ outcome: 'executed', value: 1 })
  expect(heard.story(call.key)).toEqual(['call_started', 'reserved created', 'call_ended executed'])
})

/** The same store with some methods in place of its own. */
function bindTo(store: Store<Queryable>, methods: Partial<Store<Queryable>>): Store<Queryable> {
  return new Proxy(store, {
    get(target, name: keyof Store<Queryable>) {
      const own = target[name]
      return methods[name] ?? (typeof own === 'function' ? own.bind(target) : own)
    },
  })
}

test('a replayed failure is a replay and an error', async () => {
  const heard = makeRecorder()
  const once = shop.open({ observe: heard })
  const call = makeCall()
  for (const _ of [1, 2]) await catchError(once.execute(call, () => Promise.reject(new Error('no'))))
  expect(heard.story(call.key).slice(4)).toEqual([
    'call_started',
    'reserved replay',
    'call_ended replayed handler_failed',
  ])
})

test('a function that ends its own transaction leaves something to find out', async () => {
  const heard = makeRecorder()
  const once = shop.open({ observe: heard })
  const call = makeCall()
  await catchError(once.transaction(call, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
  expect(heard.story(call.key)).toEqual([
    'call_started',
    'reconcile_scheduled transaction_ended_inside',
    'reserved created',
    'call_ended failed transaction_ended_inside',
  ])
})

test('a collision is an error of the store, and one reservation', async () => {
  const heard = makeRecorder()
  const once = shop.open({ observe: heard })
  const calls = [makeCall(), makeCall()]
  const both = makeBarrier(2)
  const move = (call: (typeof calls)[0]) =>
    once.transaction({ ...call, isolation: 'serializable' }, async (tx) => {
      await tx.query('SELECT sum(amount) FROM balances')
      await both()
      await tx.query("UPDATE balances SET amount = amount + 1 WHERE name = 'alice'")
    })
  await Promise.all(calls.map(move))
  expect(heard.of('store_error')).toMatchObject([{ step: 'transact', code: '40001' }])
  expect(heard.of('reserved').map(({ kind }) => kind)).toEqual(['created', 'created'])
})

test('a store that is away is told by step and code, also where it was tried again', async () => {
  const heard = makeRecorder()
  const { proxy, pool } = await openProxy(shop)
  const bounds = { statementMaxMs: 200, connectionWaitMaxMs: 200 }
  const once = shop.open({ pool, store: bounds, observe: heard })
  await once.start()
  const [looked, claimed, saved] = [makeCall(), makeCall(), makeCall()]
  const deadlineMs = 300
  await catchError(
    once.execute({ ...saved, deadlineMs }, async () => {
      proxy.setFault({ kind: 'black_hole' })
    }),
  )
  expect(heard.story(saved.key).slice(0, 3)).toEqual([
    'call_started',
    'reserved created',
    'store_error complete store_unavailable',
  ])
  expect(heard.story(saved.key).at(-1)).toBe('call_ended failed outcome_unknown')
  await catchError(once.transaction({ ...looked, deadlineMs }, async () => 1))
  expect(heard.story(looked.key)).toEqual([
    'call_started',
    expect.stringMatching(/^store_error look /),
    expect.stringMatching(/^call_ended failed (?:store_unavailable|pool_exhausted)$/),
  ])
  await catchError(once.execute({ ...claimed, deadlineMs }, async () => 1))
  expect(heard.story(claimed.key)[1]).toMatch(/^store_error claim /)
  expect(heard.story(claimed.key)).not.toContain('reserved created')
})

test('a store that cannot be started is told', async () => {
  const heard = makeRecorder()
  const { proxy, pool } = await openProxy(shop)
  proxy.setFault({ kind: 'refuse' })
  const once = shop.open({ pool, observe: heard })
  await catchError(once.start())
  expect(heard.of('store_error')).toMatchObject([{ step: 'start', code: 'store_unavailable', id: null }])
})

test('within tells an error of the database, but not what its caller did wrong', async () => {
  const heard = makeRecorder()
  const once = shop.open({ observe: heard })
  const [lost, busy] = [makeCall(), makeCall()]
  const client = await beginCaller(shop)
  await once.within(client, busy, async () => {
    await catchError(once.within(client, makeCall(), async () => 1))
  })
  expect(heard.of('store_error')).toEqual([])
  await client.query('ROLLBACK; BEGIN')
  await client.query('SELECT 1/0').catch(() => {})
  await catchError(once.within(client, lost, async () => 1))
  expect(heard.story(lost.key)).toEqual([
    'call_started',
    'store_error within 25P02',
    'call_ended failed thrown',
  ])
})

test('calls under way are told when they start', async () => {
  const heard = makeRecorder()
  const once = shop.open({ observe: heard })
  const call = makeCall()
  let finish = () => {}
  const running = once.execute(call, () => new Promise<void>((resolve) => (finish = resolve)))
  await waitUntil('it runs', () => heard.story(call.key).length === 2)
  // A handler's claim is told when it is made, not when its work is done.
  expect(heard.story(call.key)).toEqual(['call_started', 'reserved created'])
  finish()
  await running
})
