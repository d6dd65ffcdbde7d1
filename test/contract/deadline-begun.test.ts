import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { type FetchOptions, idempotent } from '../../src/http/adapters/fetch/index.ts'
import { type Op, operation, reply } from '../../src/index.ts'
import { leaveEffect, type OpenOptions, openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
  await shop.open().start()
})

const OPERATION = 'payments.create'

/** A route with a deadline of the client, and how to ask it. */
function serve(
  policy: Partial<FetchOptions<Request, object>>,
  handle?: (request: Request, given: { idempotency: unknown }) => Promise<Response>,
  options: OpenOptions = {},
) {
  const once = shop.open(options)
  const all = { account: () => 'acct_1', operation: OPERATION, deadlineHeader: 'X-Deadline', ...policy }
  const route = idempotent(once, all as never, handle as never)
  const send = async (key: string, deadline?: number) => {
    const headers = { 'Idempotency-Key': key, ...(deadline && { 'X-Deadline': String(deadline) }) }
    const answer = await route(new Request('http://localhost/payments', { method: 'POST', headers }))
    return { status: answer.status, body: (await answer.json()) as { readonly code?: string } }
  }
  const stateOf = async (key: string) =>
    (await once.explain({ account: 'acct_1', operation: OPERATION, key })).state
  return { send, stateOf }
}

const payment = (run: (op: Op) => Promise<unknown>) => ({
  operation: operation(OPERATION, async (op) => reply(201, await run(op))),
})

/** Well past it: the time that is left is counted by another clock, and by a process that may be busy. */
const SKEW_MS = 300

async function until(time: number): Promise<void> {
  while (Date.now() <= time + SKEW_MS) await new Promise(setImmediate)
}

function blockUntil(time: number): void {
  while (Date.now() <= time + SKEW_MS);
}

describe('what has begun when the deadline of the client passes', () => {
  test('a saga keeps the lease, and so the time-outs of its calls: nothing is undone', async () => {
    const done: string[] = []
    const call = (name: string, timeoutMs?: number) => ({
      call: async () => done.push(name),
      ...(timeoutMs && { timeoutMs }),
    })
    const { send } = serve(
      payment(async (op) => {
        await op.call('debited', call('debit'))
        op.compensate('undone', call('undo'))
        await op.call('credited', call('credit', 5_000))
        return {}
      }),
    )
    expect((await send(randomUUID(), Date.now() + 6_000)).status).toBe(201)
    expect(done).toEqual(['debit', 'credit'])
  })

  test('a saga that fails after the deadline is undone', async () => {
    const deadline = Date.now() + 1_000
    const done: string[] = []
    const { send } = serve(
      payment(async (op) => {
        await op.call('debited', { call: async () => done.push('debit') })
        op.compensate('undone', { call: async () => done.push('undo') })
        await until(deadline)
        throw new Error('the account is closed')
      }),
    )
    const key = randomUUID()
    await send(key, deadline).catch(() => {})
    expect(done).toEqual(['debit', 'undo'])
    expect((await send(key)).body.code).toBe('handler_failed')
  })

  test('a call is waited for, and the step behind it is written', async () => {
    const deadline = Date.now() + 1_000
    let calls = 0
    const { send, stateOf } = serve(
      payment(async (op) => {
        const charge = await op.call('charged', {
          idempotent: false,
          async call() {
            calls += 1
            await until(deadline)
            return `ch_${calls}`
          },
        })
        return await op.transaction('settled', async (tx) => {
          await leaveEffect(tx, op.key)
          return { charge }
        })
      }),
    )
    const key = randomUUID()
    expect(await send(key, deadline)).toEqual({ status: 201, body: { charge: 'ch_1' } })
    expect([calls, await shop.countEffects(key), await stateOf(key)]).toEqual([1, 1, 'completed'])
  })

  test('a transaction is committed, and its reply is sent', async () => {
    const deadline = Date.now() + 1_000
    const { send, stateOf } = serve({ protect: 'transaction' }, async (_, { idempotency }) => {
      const { tx, key } = idempotency as unknown as { tx: Parameters<typeof leaveEffect>[0]; key: string }
      await leaveEffect(tx, key)
      await tx.query('SELECT pg_sleep($1)', [Math.max(0, deadline + 300 - Date.now()) / 1_000])
      return Response.json({ ok: true }, { status: 201 })
    })
    const key = randomUUID()
    expect((await send(key, deadline)).status).toBe(201)
    expect([await shop.countEffects(key), await stateOf(key)]).toEqual([1, 'completed'])
  })
})

describe('what has not begun when the deadline of the client passes', () => {
  for (const [protect, point] of [
    ['handler', 'handler.claim.after'],
    ['transaction', 'transaction.look.after'],
  ] as const) {
    test(`a ${protect} whose claim took longer is not called, and a retry runs it`, async () => {
      let deadline = 0
      let runs = 0
      const crashPoint = (reached: string) => {
        if (reached === point) blockUntil(deadline)
      }
      const handle = async () => {
        runs += 1
        return Response.json({}, { status: 201 })
      }
      const { send } = serve({ protect }, handle, { crashPoint })
      const key = randomUUID()
      deadline = Date.now() + 1_000
      const late = await send(key, deadline)
      expect([late.status, late.body.code, runs]).toEqual([504, 'deadline_exceeded', 0])
      expect((await send(key)).status).toBe(201)
      expect(runs).toBe(1)
    })
  }

  test('the first step of an operation is not begun: nothing is left half done', async () => {
    let deadline = Date.now() + 1_000
    const { send } = serve(
      payment(async (op) => {
        await until(deadline)
        return await op.transaction('reserved', async (tx) => {
          await leaveEffect(tx, op.key)
          return {}
        })
      }),
    )
    const key = randomUUID()
    const late = await send(key, deadline)
    expect([late.status, late.body.code]).toEqual([504, 'deadline_exceeded'])
    expect(await shop.countEffects(key)).toBe(0)
    deadline = 0
    expect((await send(key)).status).toBe(201)
    expect(await shop.countEffects(key)).toBe(1)
  })

  test('the next call of an operation is not begun; what was done is looked at', async () => {
    const deadline = Date.now() + 1_000
    const done: string[] = []
    const { send, stateOf } = serve(
      payment(async (op) => {
        await op.call('debited', {
          async call() {
            done.push('debit')
            await until(deadline)
            return 1
          },
        })
        return await op.call('credited', { call: async () => done.push('credit') })
      }),
    )
    const key = randomUUID()
    expect((await send(key, deadline)).body).toMatchObject({ code: 'outcome_pending', executed: 'unknown' })
    expect([done, await stateOf(key)]).toEqual([['debit'], 'unknown'])
  })

  test('an operation that made no step is answered all the same: its function has run', async () => {
    const deadline = Date.now() + 1_000
    const { send } = serve(payment(() => until(deadline).then(() => ({}))))
    expect((await send(randomUUID(), deadline)).status).toBe(201)
  })
})
