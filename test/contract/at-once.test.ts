import { beforeAll, describe, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import { type Onlyonce, operation, reply } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { leaveEffect, makeCall, makeGate, openShop, type Shop } from './shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const pay = operation('orders.pay', async (op, input: { amount: number }) => {
  await op.transaction('paid', (tx) => leaveEffect(tx, op.key))
  return reply(201, { amount: input.amount })
})

const route = { account: () => 'acct_1', operation: 'orders.create' }

/** The same route under each protection. */
const ROUTES: [string, () => (request: Request) => Promise<Response>][] = [
  ['handler', () => idempotent(once, route, async () => Response.json({}, { status: 201 }))],
  [
    'transaction',
    () =>
      idempotent(once, { ...route, protect: 'transaction' }, async (_, { tx }) => {
        await leaveEffect(tx, 'on a route')
        return Response.json({}, { status: 201 })
      }),
  ],
  ['operation', () => idempotent(once, { account: () => 'acct_1', operation: pay })],
  [
    'operation with admit',
    () => idempotent(once, { account: () => 'acct_1', operation: pay, admit: () => ({ admit: true }) }),
  ],
]

function requestOf(key: string, amount = 5): Request {
  const headers = { 'Idempotency-Key': key, 'Content-Type': 'application/json' }
  return new Request('http://localhost/orders', { method: 'POST', headers, body: JSON.stringify({ amount }) })
}

const seen = ({ status, headers }: Response) => `${status} ${headers.get('idempotent-replayed') ?? 'first'}`

describe.each(ROUTES)('requests that come at once to a route: %s', (_, open) => {
  test('retries of what is done are all replays', async () => {
    const POST = open()
    const { key } = makeCall()
    expect(seen(await POST(requestOf(key)))).toBe('201 first')
    const answers = await Promise.all(Array.from({ length: 10 }, () => POST(requestOf(key))))
    expect(answers.map(seen)).toEqual(Array(10).fill('201 true'))
  })

  test('a retry is a replay also behind another request with its key', async () => {
    const POST = open()
    const { key } = makeCall()
    await POST(requestOf(key))
    const amounts = [6, 5, 7, 5]
    const answers = await Promise.all(amounts.map((amount) => POST(requestOf(key, amount))))
    expect(answers.map(seen)).toEqual(['422 first', '201 true', '422 first', '201 true'])
  })
})

describe('calls from code that come at once', () => {
  type Run = (
    call: ReturnType<typeof makeCall> & { input: { amount: number } },
  ) => Promise<{ outcome: string }>
  test.each<[string, Run]>([
    ['handler', (call) => once.execute(call, async () => ({ done: true }))],
    ['transaction', (call) => once.transaction(call, (tx) => leaveEffect(tx, call.key))],
    ['run', ({ account, key, input }) => once.run(pay, { account, key, input })],
  ])('a retry of what is done is replayed behind another request with its key: %s', async (_, run) => {
    const { account, operation, key } = makeCall()
    const callOf = (amount: number) => ({ account, operation, key, input: { amount } })
    expect((await run(callOf(5))).outcome).toBe('executed')
    const results = await Promise.all([6, 5, 7, 5].map((amount) => run(callOf(amount))))
    const outcomes = results.map(({ outcome }) => outcome)
    expect(outcomes).toEqual(['key_reused', 'replayed', 'key_reused', 'replayed'])
  })

  test('another request with the key of work that runs is refused, and does not wait for it', async () => {
    const gate = makeGate()
    const slow = operation('orders.slow', async (op, _: unknown) => {
      await op.transaction('begun', (tx) => leaveEffect(tx, op.key))
      await gate.pass()
      return reply(201, {})
    })
    const { account, key } = makeCall()
    const first = once.run(slow, { account, key, input: 1 })
    const beside = once.run(slow, { account, key, input: 2 })
    await gate.reached
    expect(await beside).toEqual({ outcome: 'key_reused' })
    expect(await once.run(slow, { account, key, input: 2 })).toEqual({ outcome: 'key_reused' })
    gate.open()
    expect((await first).outcome).toBe('executed')
    expect(await shop.countEffects(key)).toBe(1)
  })

  test('a request that another with its key stood before runs where that one came to nothing', async () => {
    const { account, operation, key } = makeCall()
    const call = { account, operation, key }
    const gone = new Error('away')
    let looks = 0
    const door = shop.open({
      crashPoint: (point) => {
        if (point === 'transaction.look.before' && ++looks === 1) throw gone
      },
    })
    await door.start()
    const work = (tx: PostgresTx) => leaveEffect(tx, key)
    const [first, second] = await Promise.allSettled([
      door.transaction({ ...call, input: 1 }, work),
      door.transaction({ ...call, input: 2 }, work),
    ])
    expect(first.status).toBe('rejected')
    expect(second).toMatchObject({ value: { outcome: 'executed' } })
    expect(await shop.countEffects(key)).toBe(1)
  })
})
