import { beforeAll, describe, expect, test } from 'vitest'
import type { Signal } from '../../src/entries/observe.ts'
import {
  invalid,
  notExecuted,
  type Onlyonce,
  OnlyonceError,
  type Operation,
  onlyonce,
  operation,
  reply,
} from '../../src/index.ts'
import { type PostgresTx, postgres } from '../../src/store/postgres/index.ts'
import { POOLER } from '../setup/pooler.ts'
import { faultyStore } from '../truth/faulty-store.ts'
import {
  beginCaller,
  type Call,
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openShop,
  SECRET,
  type Shop,
} from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

let names = 0
type Once = Onlyonce<PostgresTx>

/** Every kind of protection, with work that is told what to do. */
const KINDS: Record<string, (once: Once, call: Call, work: () => Promise<unknown>) => Promise<unknown>> = {
  handler: (once, call, work) => once.execute(call, work),
  transaction: (once, call, work) => once.transaction(call, work),
  operation: (once, { operation: name, ...call }, work) => {
    works.set(name, work)
    const durable = known.get(name) ?? operation(name, async () => reply(201, await works.get(name)!()))
    known.set(name, durable)
    return once.run(durable, call)
  },
}
const works = new Map<string, () => Promise<unknown>>()
const known = new Map<string, Operation<unknown, unknown>>()

/** Operations are found by their names, and each test has work of its own. */
const callOf = (): Call => {
  const name = `invalid.${++names}`
  return makeCall({ account: name, operation: name })
}

const records = async ({ key }: Call) =>
  (await shop.observer.query('SELECT state, fence::int FROM onlyonce.records WHERE key = $1', [key])).rows

describe.each(Object.entries(KINDS))('%s: a request that is called invalid', (_, run) => {
  test('leaves no record, and a corrected one runs under the same key', async () => {
    const signals: Signal[] = []
    const once = shop.open({ observe: { signal: (signal) => signals.push(signal) } })
    const call = callOf()
    const error = await catchError(
      run(once, call, () => Promise.reject(invalid({ detail: 'No such shop.' }))),
    )
    expect(error).toMatchObject({ code: 'request_invalid', executed: 'not_by_this_request' })
    expect((error as Error).message).toMatch(/same key. No such shop.$/)
    expect(await records(call)).toEqual([])
    expect(await once.explain(call)).toMatchObject({ state: 'none', why: expect.stringMatching(/invalid/) })
    const ended = signals.filter((signal) => signal.signal === 'call_ended')
    expect(ended).toMatchObject([{ outcome: 'invalid', code: 'request_invalid' }])
    expect(signals.filter((signal) => signal.signal === 'lease_lost')).toEqual([])
    const corrected = { ...call, input: { amount: 6 } }
    expect(await run(once, corrected, async () => 1)).toMatchObject({ outcome: 'executed' })
    expect(await run(once, corrected, async () => 2)).toMatchObject({ outcome: 'replayed', value: 1 })
    expect(await run(once, call, async () => 3)).toMatchObject({ outcome: 'key_reused' })
  })

  test('keeps the record that an earlier request has left, and says so', async () => {
    const once = shop.open()
    const call = callOf()
    await catchError(run(once, call, () => Promise.reject(notExecuted())))
    const error = await catchError(run(once, call, () => Promise.reject(invalid())))
    expect(error).toMatchObject({ code: 'request_invalid_kept', executed: 'not_by_this_request' })
    expect(await records(call)).toMatchObject([{ state: 'retryable' }])
    expect(await run(once, { ...call, input: 'other' }, async () => 1)).toMatchObject({
      outcome: 'key_reused',
    })
    expect(await run(once, call, async () => 1)).toMatchObject({ outcome: 'executed' })
  })

  test('says nothing about the work around it, where it was said of a call inside', async () => {
    const once = shop.open()
    const call = callOf()
    const inner = async () => {
      await leaveEffect(shop.observer, call.key)
      await once.execute(makeCall({ operation: 'inner' }), () => Promise.reject(invalid()))
    }
    const error = await catchError(run(once, call, inner))
    expect(error).not.toMatchObject({ code: 'request_invalid' })
    expect(await records(call)).toHaveLength(1)
    expect(await run(once, { ...call, input: 'other' }, async () => 1)).toMatchObject({
      outcome: 'key_reused',
    })
  })

  test('is answered to duplicates that wait for it, and the next one runs', async () => {
    const once = shop.open()
    const call = callOf()
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const refuse = () => gate.then(() => Promise.reject(invalid()))
    const first = catchError(run(once, call, refuse))
    const joined = catchError(run(once, call, refuse))
    open()
    expect(await first).toMatchObject({ code: 'request_invalid' })
    expect(await joined).toMatchObject({ code: 'request_invalid' })
    expect(await run(once, call, async () => 1)).toMatchObject({ outcome: 'executed' })
  })

  test('may be so because another process came first: its reply is the answer', async () => {
    const [once, other] = [shop.open(), shop.open()]
    const call = callOf()
    const outcome = await run(once, call, async () => {
      await run(other, call, async () => 'theirs')
      throw invalid({ detail: 'It is there already.' })
    }).catch((error: unknown) => error)
    // A handler has claimed its key before: the other has not run.
    if (run === KINDS.handler) expect(outcome).toMatchObject({ code: 'request_invalid' })
    else expect(outcome).toMatchObject({ outcome: 'replayed', value: 'theirs' })
  })
})

test('a duplicate in another process is told to come back, and then runs with its own content', async () => {
  const [once, other] = [shop.open(), shop.open()]
  const call = makeCall()
  const gate = makeGate()
  const first = catchError(once.execute(call, () => gate.pass().then(() => Promise.reject(invalid()))))
  await gate.reached
  expect(await other.execute(call, async () => 1)).toMatchObject({ outcome: 'in_progress' })
  const corrected = { ...call, input: 'other' }
  expect(await other.execute(corrected, async () => 1)).toMatchObject({ outcome: 'key_reused' })
  gate.open()
  expect(await first).toMatchObject({ code: 'request_invalid' })
  expect(await other.execute(corrected, async () => 1)).toMatchObject({ outcome: 'executed' })
})

test('an operation frees no key behind a step', async () => {
  const once = shop.open()
  const call = callOf()
  let wrong = true
  const durable = operation(call.account, async (op) => {
    await op.transaction('one', async (tx) => {
      await tx.query('INSERT INTO effects (note) VALUES ($1)', [call.key])
    })
    if (wrong) throw invalid()
    return reply(201, 'done')
  })
  const { operation: _, ...asked } = call
  const error = await catchError(once.run(durable, asked))
  expect(error).toMatchObject({ code: 'unfinished', executed: 'unknown' })
  expect(await records(call)).toMatchObject([{ state: 'retryable' }])
  expect((await once.run(durable, { ...asked, input: 'other' })).outcome).toBe('key_reused')
  wrong = false
  expect((await once.run(durable, asked)).outcome).toBe('executed')
  expect(await shop.countEffects(call.key)).toBe(1)
})

test('an operation frees no key in whose first step a call may have been made before', async () => {
  const once = shop.open({ reconcileAfterMs: [60_000] })
  const call = callOf()
  const { operation: _, ...asked } = call
  let runs = 0
  const durable = operation(call.account, async (op) => {
    runs += 1
    if (runs > 1) throw invalid()
    await op.call('call', {
      call: () => Promise.reject(new Error('The line is dead.')),
      find: async () => ({ status: 'pending' }),
      idempotent: true,
      timeoutMs: 1_000,
      visibleWithinMs: 60_000,
      keyLifetimeMs: 86_400_000,
    })
    return reply(201, 'done')
  })
  expect((await once.run(durable, asked)).outcome).toBe('unknown')
  // As a worker would go on with it: the owner's lease is over, and the record says nothing of the call.
  await shop.observer.query(
    `UPDATE onlyonce.records SET state = 'in_progress', lease_until = now() - interval '1 s', error_code = NULL,
       error_message = NULL, look_at = NULL, looks = NULL, waits_for = NULL WHERE key = $1`,
    [call.key],
  )
  expect((await once.run(durable, asked)).outcome).toBe('unknown')
  expect(runs).toBe(2)
  expect(await records(call)).toMatchObject([{ state: 'unknown' }])
})

test('within: the claim is undone with the work, and the caller goes on', async () => {
  const once = shop.open()
  const call = makeCall()
  const tx = await beginCaller(shop)
  const error = await catchError(once.within(tx, call, () => Promise.reject(invalid())))
  expect(error).toMatchObject({ code: 'request_invalid' })
  const corrected = { ...call, input: 'other' }
  expect((await once.within(tx, corrected, async () => 1)).outcome).toBe('executed')
  await tx.query('COMMIT')
  expect((await once.transaction(corrected, async () => 2)).outcome).toBe('replayed')
})

test('a handler whose record was given up meanwhile leaves it retryable', async () => {
  const once = shop.open()
  const call = makeCall()
  const error = await catchError(
    once.execute(call, async () => {
      await shop.observer.query(
        `UPDATE onlyonce.records SET state = 'unknown', lease_until = NULL, error_code = 'owner_vanished',
           error_message = '', look_at = now(), looks = 0 WHERE key = $1`,
        [call.key],
      )
      throw invalid()
    }),
  )
  expect(error).toMatchObject({ code: 'request_invalid_kept' })
  expect(await records(call)).toEqual([{ state: 'retryable', fence: 1 }])
})

test.each(['before', 'after'] as const)(
  'an answer that is lost %s the record was removed is asked for again',
  async (when) => {
    const pool = shop.database.pool({ max: 2 })
    const error = new OnlyonceError('store_unavailable')
    const store = faultyStore(postgres({ pool, pooler: POOLER }), [
      { method: 'forget', when, error, times: 1 },
    ])
    const once = onlyonce({ secret: SECRET, background: false, store })
    const call = makeCall()
    const told = await catchError(once.execute(call, () => Promise.reject(invalid())))
    expect(told).toMatchObject({ code: 'request_invalid' })
    expect(await records(call)).toEqual([])
  },
)

test('an error that only has the same code frees nothing', async () => {
  const once = shop.open()
  const call = makeCall()
  await catchError(once.execute(call, () => Promise.reject(new OnlyonceError('request_invalid'))))
  expect(await records(call)).toMatchObject([{ state: 'completed' }])
})

test('takes a status of the client, and a body that JSON can hold', () => {
  for (const status of [200, 399, 500, 422.5])
    expect(() => invalid({ status })).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  expect(() => invalid({ body: 1n })).toThrow(expect.objectContaining({ code: 'option_invalid' }))
  expect(() => invalid({ body: () => {} })).toThrow(expect.objectContaining({ code: 'option_invalid' }))
})
