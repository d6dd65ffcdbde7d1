import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { notExecuted, operation, reply } from '../../src/index.ts'
import { completer } from '../../src/workers/index.ts'
import {
  beginCaller,
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openShop,
  type Shop,
} from '../contract/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const effectOf = (key: string) => leaveEffect(shop.observer, key)
const saysNotExecuted = async () => {
  throw notExecuted()
}

describe('that nothing was executed is said of a key', () => {
  test('whose claim was new, and was given back', async () => {
    const once = shop.open()
    for (const protect of ['handler', 'transaction'] as const) {
      const call = makeCall()
      const error = await catchError(once[protect === 'handler' ? 'execute' : protect](call, saysNotExecuted))
      expect(error).toMatchObject({ code: 'not_executed', executed: 'no' })
      expect((await once.explain(call)).state).toBe('retryable')
      // Of what was left like that, it is still proved.
      expect(
        await catchError(once[protect === 'handler' ? 'execute' : protect](call, saysNotExecuted)),
      ).toMatchObject({ executed: 'no' })
    }
  })

  test('also where its author has frozen the error', async () => {
    const once = shop.open()
    const frozen = Object.freeze(notExecuted(new Error('out of stock')))
    for (const protect of ['handler', 'transaction'] as const) {
      const error = await catchError(
        once[protect === 'handler' ? 'execute' : protect](makeCall(), async () => {
          throw frozen
        }),
      )
      expect(error).toMatchObject({ code: 'not_executed', executed: 'no', cause: frozen })
    }
  })

  test('to all who waited for the same request', async () => {
    const once = shop.open()
    const call = makeCall()
    const errors = await Promise.all(
      Array.from({ length: 5 }, () => catchError(once.execute(call, saysNotExecuted))),
    )
    for (const error of errors) expect(error).toMatchObject({ code: 'not_executed', executed: 'no' })
  })
})

describe('it is not said of a key', () => {
  test('of which an earlier attempt may have done something, because it may run twice', async () => {
    const once = shop.open()
    const call = { ...makeCall(), rerunnable: true }
    const threw = new Error('after its effect')
    const first = once.execute(call, async () => {
      await effectOf(call.key)
      throw threw
    })
    expect(await catchError(first)).toBe(threw)
    const error = await catchError(once.execute(call, saysNotExecuted))
    expect(error).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each(['handler', 'transaction', 'an operation'] as const)(
    'of which that is so, by %s that may not run twice, also at its second try',
    async (how) => {
      const once = shop.open()
      const call = makeCall({ operation: `truth.changed_${how.replaceAll(' ', '_')}` })
      const { operation: name, ...asked } = call
      const refuse = operation(name, async () => saysNotExecuted())
      const retry = () =>
        catchError(
          how === 'an operation'
            ? once.run(refuse, asked)
            : once[how === 'handler' ? 'execute' : how](call, saysNotExecuted),
        )
      const first = once.execute({ ...call, rerunnable: true }, async () => {
        await effectOf(call.key)
        throw new Error('after its effect')
      })
      await catchError(first)
      for (const _ of [1, 2]) {
        expect(await retry()).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
        const { state, why } = await once.explain(call)
        expect(state).toBe('retryable')
        expect(why).toMatch(/may have had effects/)
      }
      expect(await shop.countEffects(call.key)).toBe(1)
    },
  )

  test.each(['a retry', 'a worker'] as const)(
    'of which that is so, by an operation that %s went on with after its owner had vanished',
    async (who) => {
      const call = makeCall({ operation: `truth.vanished_${who.replaceAll(' ', '_')}` })
      const { operation: name, ...asked } = call
      const gate = makeGate()
      let runs = 0
      const refuse = operation(name, async (op) => {
        runs += 1
        if (runs === 1) await gate.pass()
        return await op.transaction('refused', saysNotExecuted)
      })
      const [one, two] = [shop.open({ operations: [refuse] }), shop.open({ operations: [refuse] })]
      const first = one.execute({ ...call, rerunnable: true }, async () => {
        await effectOf(call.key)
        throw new Error('after its effect')
      })
      await catchError(first)
      const vanished = catchError(one.run(refuse, asked))
      await gate.reached
      await shop.observer.query(
        `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 minute' WHERE key = $1`,
        [call.key],
      )
      if (who === 'a retry') await catchError(two.run(refuse, asked))
      else await completer(two, { graceMs: 1 }).runOnce()
      expect(runs).toBe(2)
      expect(await two.explain(call)).toMatchObject({
        state: 'retryable',
        why: expect.stringContaining('may have had effects'),
      })
      for (const _ of [1, 2]) {
        expect(await catchError(two.run(refuse, asked))).toMatchObject({
          code: 'not_applied',
          executed: 'not_by_this_request',
        })
      }
      gate.open()
      await vanished
      expect(await shop.countEffects(call.key)).toBe(1)
    },
  )

  test('of which an earlier reply may run again by the rules of its route, whatever was done before it', async () => {
    const { key } = makeCall()
    let runs = 0
    const POST = idempotent(
      shop.open(),
      { account: () => 'acct_1', operation: 'proof.final', final: { '5xx': 'retry' } },
      async () => {
        runs += 1
        if (runs > 1) throw notExecuted()
        await effectOf(key)
        return new Response('boom', { status: 500 })
      },
    )
    const send = () =>
      POST(new Request('http://localhost/', { method: 'POST', headers: { 'idempotency-key': key } }))
    expect((await send()).status).toBe(500)
    const told = await send().then(
      (answer) => answer.json(),
      (error) => error,
    )
    expect(told).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
    expect(runs).toBe(2)
  })

  test('that another request has taken meanwhile', async () => {
    const [one, two] = [shop.open(), shop.open()]
    const call = makeCall()
    const gate = makeGate()
    let other: Promise<unknown> = Promise.resolve()
    const error = await catchError(
      one.transaction(call, async () => {
        other = two.execute(call, async () => {
          await effectOf(call.key)
          await gate.pass()
        })
        await gate.reached
        throw notExecuted()
      }),
    )
    expect(error).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
    gate.open()
    await other
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test.each(['an answer', 'a throw'])(
    'that another has executed, by %s of an operation which refused its own duplicate',
    async (how) => {
      const [one, two] = [shop.open(), shop.open()]
      const asked = { account: 'acct_1', key: makeCall().key, input: null }
      let other: (() => Promise<unknown>) | null = null
      const pay = operation(`truth.duplicate_${how.replaceAll(' ', '_')}`, async (op, _: unknown) =>
        op.transaction('created', async (tx) => {
          const first = other
          other = null
          if (first === null) {
            await leaveEffect(tx, op.key)
            return reply(201, { paid: true })
          }
          await first()
          if (how === 'a throw') throw notExecuted()
          return reply(409, { code: 'duplicate' })
        }),
      )
      other = () => two.run(pay, asked)
      expect(await one.run(pay, asked)).toEqual({ outcome: 'replayed', status: 201, value: { paid: true } })
      expect(await shop.countEffects(asked.key)).toBe(1)
    },
  )

  test("inside a transaction of the caller's, which may go on", async () => {
    const once = shop.open()
    const call = makeCall()
    const client = await beginCaller(shop)
    const error = await catchError(once.within(client, call, saysNotExecuted))
    expect(error).toMatchObject({ code: 'not_applied', executed: 'not_by_this_request' })
    await client.query('ROLLBACK')
  })

  test('because a call inside its work has proved it of another key', async () => {
    const once = shop.open()
    const [outer, inner] = [makeCall(), makeCall()]
    const work = async () => {
      await effectOf(outer.key)
      await once.execute(inner, saysNotExecuted)
    }
    for (const rerunnable of [true, false]) {
      const call = { ...outer, rerunnable, key: `${outer.key}-${rerunnable}` }
      const error = await catchError(once.execute(call, work))
      expect(error).toMatchObject({ code: rerunnable ? 'unfinished' : 'handler_failed', executed: 'unknown' })
    }
  })

  test('because the store was away inside its work', async () => {
    const [once, closed] = [shop.open(), shop.open()]
    await closed.close()
    const call = makeCall()
    const work = async () => {
      await effectOf(call.key)
      await closed.execute(makeCall(), async () => 1)
    }
    expect(await catchError(once.execute(call, work))).toMatchObject({
      code: 'handler_failed',
      executed: 'unknown',
      cause: { code: 'closed' },
    })
  })
})
