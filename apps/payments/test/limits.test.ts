/** How much is let through, over HTTP: by account, by card, and by what the process can take on. */
import { describe, expect, it } from 'vitest'
import { freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { openSandbox } from './sandbox.ts'
import { type Answer, openTestService, type TestCaller, type TestService, testConfig } from './service.ts'

const TEA = { amount: 4_200, currency: 'EUR', payment_method: 'pm_card_visa' }
const database = await freshDatabase()
const { gateway, client } = await openSandbox({}, { timeoutMs: 10_000 })

/** All on one database, as processes side by side are. */
async function open(env: Readonly<Record<string, string | undefined>>): Promise<TestService> {
  const { limits } = testConfig(database, env)
  return await openTestService({ database, config: { limits }, gateways: { test: client } })
}

const calm = await open({ RATE_LIMIT_TEST: undefined, RATE_LIMIT_LIVE: undefined })
const beside = await open({ RATE_LIMIT_TEST: undefined, RATE_LIMIT_LIVE: undefined })
const careful = await open({ VELOCITY_CARD: '3/60', VELOCITY_ACCOUNT: '5/60' })
const carefulToo = await open({ VELOCITY_CARD: '3/60', VELOCITY_ACCOUNT: '5/60' })

let made = 0
const newKey = () => `limits-${++made}-attempt`
const pay = (service: TestService, { apiKey }: TestCaller, key = newKey(), changes: object = {}) =>
  service.post('/v1/payments', { ...TEA, ...changes }, { apiKey, key })
const stateOf = async ({ service }: TestService, { account }: TestCaller, key: string) =>
  (await service.once.explain({ account, operation: 'payments.create', key })).state
const charges = async () => (await gateway.state()).movements.capture
const statusesOf = (answers: readonly Answer[]) => answers.map(({ status }) => status)

/** A refusal that says when to come back, in the form of all others of the service. */
function expectLimited(answer: Answer, code: string, reason: string, policy: string): void {
  const { status, headers, body } = answer
  expect([status, body.code]).toEqual([429, code])
  expect(body).toMatchObject({ status: 429, retryable: true, request_id: headers.get('request-id') })
  expect(body.type).toBe(`https://onlyonce.dev/problems/${code}`)
  expect(headers.get('content-type')).toBe('application/problem+json')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('ratelimit-policy')).toBe(policy)
  const [name, width] = [policy.split(';')[0], Number(/w=(\d+)/.exec(policy)![1])]
  const [, told, left, reset] = /^("\w+");r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
  expect([told, left]).toEqual([name, '0'])
  expect(headers.get('retry-after')).toBe(reset)
  expect(Number(reset)).toBeGreaterThan(0)
  expect(Number(reset)).toBeLessThanOrEqual(width)
  expect(headers.get('stripe-should-retry')).toBe('true')
  expect(headers.get('stripe-rate-limited-reason')).toBe(reason)
}

/** So many requests of a new account within one window, which begins with the first of them. */
async function burst(services: readonly TestService[], mode: 'test' | 'live', count: number) {
  for (let tries = 0; tries < 10; tries += 1) {
    const caller = await calm.addCaller(mode)
    const begun = performance.now()
    const asks = Array.from({ length: count }, (_, i) =>
      services[i % services.length]!.ask('/v1/balances', { apiKey: caller.apiKey }),
    )
    const answers = await Promise.all(asks)
    // Where the database is too slow for the limits, they let pass what they could not count.
    const counted = answers.every(({ headers }) => headers.has('ratelimit'))
    if (counted && performance.now() - begun < 950) {
      const refused = answers.filter(({ status }) => status === 429)
      return { caller, served: answers.filter(({ status }) => status === 200).length, refused }
    }
  }
  throw new Error('The machine is too slow for a window of a second.')
}

/** On a slow machine a window of a second may be over before the request comes that is too many. */
async function untilRefused<T extends { readonly refused: Answer }>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 0; tries < 10; tries += 1) {
    const tried = await attempt()
    if (tried.refused.status === 429) return tried
  }
  throw new Error('Nothing is ever refused.')
}

describe('the rate of an account', () => {
  it('is 25 a second in test mode, and tells so', async () => {
    const { caller, served, refused } = await burst([calm], 'test', 40)
    expect([served, refused.length]).toEqual([25, 15])
    for (const answer of refused) {
      expectLimited(answer, 'rate_limited', 'account-rate', '"test";q=25;w=1')
    }
    const allowed = await waitForRoom(caller)
    expect(allowed.headers.get('ratelimit-policy')).toBe('"test";q=25;w=1')
    expect(allowed.headers.get('ratelimit')).toMatch(/^"test";r=\d+;t=1$/)
    expect(allowed.headers.get('retry-after')).toBeNull()
  })

  it('is 100 a second in live mode', async () => {
    const { served, refused } = await burst([calm], 'live', 120)
    expect([served, refused.length]).toEqual([100, 20])
    expectLimited(refused[0]!, 'rate_limited', 'account-rate', '"live";q=100;w=1')
  })

  it('is that of the account over all processes', async () => {
    const { served, refused } = await burst([calm, beside], 'test', 40)
    expect([served, refused.length]).toEqual([25, 15])
  })

  it('is no matter of other accounts', async () => {
    const other = await calm.addCaller()
    await burst([calm], 'test', 30)
    expect((await calm.ask('/v1/balances', { apiKey: other.apiKey })).status).toBe(200)
  })

  it('refuses a payment before its key is claimed: the same key goes through later', async () => {
    const { caller, key, refused } = await untilRefused(async () => {
      const { caller } = await burst([calm], 'test', 25)
      const key = newKey()
      return { caller, key, refused: await pay(calm, caller, key) }
    })
    const before = await charges()
    expectLimited(refused, 'rate_limited', 'account-rate', '"test";q=25;w=1')
    expect([await stateOf(calm, caller, key), await charges()]).toEqual(['none', before])
    let answer = refused
    await waitUntil('there is room again', async () => {
      answer = await pay(calm, caller, key)
      return answer.status !== 429
    })
    expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, null])
    expect(await charges()).toBe(before + 1)
  })

  it('is no matter of replays: they count against nothing, and are served when it refuses all else', async () => {
    const slow = await open({ RATE_LIMIT_TEST: '2' })
    const [caller, key] = [await slow.addCaller(), newKey()]
    const first = await pay(slow, caller, key)
    expect(first.status).toBe(201)
    const again = await Promise.all(Array.from({ length: 30 }, () => pay(slow, caller, key)))
    expect(new Set(again.map(({ status, text }) => `${status} ${text}`))).toEqual(
      new Set([`201 ${first.text}`]),
    )
    // Another window may have begun since the payment. In any of them a payment fits: the replays have taken nothing.
    expect((await pay(slow, caller)).status).toBe(201)
  })

  it('counts writes that are wrong in their form', async () => {
    const slow = await open({ RATE_LIMIT_TEST: '2' })
    const caller = await slow.addCaller()
    const { refused } = await untilRefused(async () => {
      const wrong = Array.from({ length: 9 }, () => pay(slow, caller, newKey(), { amount: 'much' }))
      const answers = await Promise.all(wrong)
      expect(answers.filter(({ status }) => status !== 429 && status !== 400)).toEqual([])
      return { refused: answers.find(({ status }) => status === 429) ?? answers[0]! }
    })
    expectLimited(refused, 'rate_limited', 'account-rate', '"test";q=2;w=1')
  })

  async function waitForRoom({ apiKey }: TestCaller): Promise<Answer> {
    let answer: Answer | undefined
    await waitUntil('there is room again', async () => {
      answer = await calm.ask('/v1/balances', { apiKey })
      return answer.status === 200
    })
    return answer!
  }
})

describe('a card', () => {
  const CARD = '"card";q=3;w=60'

  it('is charged so often, whatever the keys, and at whichever process', async () => {
    const [caller, before] = [await careful.addCaller(), await charges()]
    const key = newKey()
    const first = [await pay(careful, caller), await pay(carefulToo, caller), await pay(careful, caller)]
    expect(statusesOf(first)).toEqual([201, 201, 201])
    const refused = [
      await pay(careful, caller, key),
      await pay(carefulToo, caller),
      await pay(careful, caller),
    ]
    for (const answer of refused) expectLimited(answer, 'velocity_limited', 'card-velocity', CARD)
    expect(await stateOf(careful, caller, key)).toBe('none')
    expect(await charges()).toBe(before + 3)
  })

  it('is charged so often, by twelve at once', async () => {
    const [caller, before] = [await careful.addCaller(), await charges()]
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => pay(i % 2 === 0 ? careful : carefulToo, caller)),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(3)
    expect(answers.filter(({ body }) => body.code === 'velocity_limited')).toHaveLength(9)
    expect(await charges()).toBe(before + 3)
  })

  it('counts by itself: not for other cards, nor for other accounts', async () => {
    const [caller, other] = [await careful.addCaller(), await careful.addCaller()]
    for (let i = 0; i < 3; i += 1) await pay(careful, caller)
    expect((await pay(careful, caller)).status).toBe(429)
    const mastercard = { payment_method: 'pm_card_mastercard' }
    expect((await pay(careful, caller, newKey(), mastercard)).status).toBe(201)
    expect((await pay(careful, other)).status).toBe(201)
  })

  it('counts when it is declined: that is what thieves try', async () => {
    const caller = await careful.addCaller()
    const stolen = { payment_method: 'pm_card_chargeDeclinedStolenCard' }
    const answers: Answer[] = []
    for (let i = 0; i < 4; i += 1) answers.push(await pay(careful, caller, newKey(), stolen))
    expect(statusesOf(answers)).toEqual([402, 402, 402, 429])
  })

  it('does not count for what is refused before anything runs, nor for a replay, which is served when nothing else is', async () => {
    const [caller, key] = [await careful.addCaller(), newKey()]
    const first = await pay(careful, caller, key)
    for (let i = 0; i < 4; i += 1) await pay(careful, caller, newKey(), { amount: 0 })
    const again = () => Promise.all([careful, carefulToo].map((service) => pay(service, caller, key)))
    for (const replayed of [...(await again()), ...(await again())]) {
      expect([replayed.status, replayed.text]).toEqual([201, first.text])
    }
    expect(statusesOf([await pay(careful, caller), await pay(careful, caller)])).toEqual([201, 201])
    expect((await pay(careful, caller)).status).toBe(429)
    for (const replayed of await again()) {
      expect([replayed.status, replayed.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    }
  })

  it('does not count for a duplicate that is refused, under a new key or the same', async () => {
    const [caller, key] = [await careful.addCaller(), newKey()]
    const order = { unique_reference: `order-${key}` }
    expect((await pay(careful, caller, newKey(), order)).status).toBe(201)
    for (const again of [key, key, newKey(), key, newKey(), key]) {
      const refused = await pay(careful, caller, again, order)
      expect([refused.status, refused.body.code]).toEqual([409, 'duplicate_intent'])
    }
    expect(statusesOf([await pay(careful, caller), await pay(careful, caller)])).toEqual([201, 201])
    expectLimited(await pay(careful, caller), 'velocity_limited', 'card-velocity', CARD)
  })

  it('does not count where the account is charged too often', async () => {
    const narrow = await open({ VELOCITY_CARD: '3/60', VELOCITY_ACCOUNT: '1/60' })
    const caller = await narrow.addCaller()
    expect((await pay(narrow, caller)).status).toBe(201)
    for (let i = 0; i < 4; i += 1) {
      const refused = await pay(narrow, caller)
      expectLimited(refused, 'velocity_limited', 'account-velocity', '"account";q=1;w=60')
    }
    // Where the account may be charged more often, its card has been tried once.
    expect(statusesOf([await pay(careful, caller), await pay(careful, caller)])).toEqual([201, 201])
  })

  it('may be charged again when its time is over, with the key that was refused', async () => {
    const hasty = await open({ VELOCITY_CARD: '1/1' })
    const caller = await hasty.addCaller()
    const { key, refused } = await untilRefused(async () => {
      const key = newKey()
      return { key, refused: await pay(hasty, caller, key) }
    })
    expectLimited(refused, 'velocity_limited', 'card-velocity', '"card";q=1;w=1')
    let answer = refused
    await waitUntil('its time is over', async () => {
      answer = await pay(hasty, caller, key)
      return answer.status !== 429
    })
    expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, null])
  })

  it('is not all: an account has its own number of charges', async () => {
    const caller = await careful.addCaller()
    const cards = ['pm_card_visa', 'pm_card_mastercard']
    const answers: Answer[] = []
    for (let i = 0; i < 6; i += 1) {
      answers.push(await pay(careful, caller, newKey(), { payment_method: cards[i % 2] }))
    }
    expect(statusesOf(answers)).toEqual([201, 201, 201, 201, 201, 429])
    expectLimited(answers[5]!, 'velocity_limited', 'account-velocity', '"account";q=5;w=60')
  })
})

describe('a process that has as much to do as it takes on', () => {
  it('refuses new work at once, and serves replays and what only reads', async () => {
    const busy = await open({ REQUESTS_AT_ONCE: '2' })
    const [paidKey, shedKey] = [newKey(), newKey()]
    const paid = await pay(busy, busy, paidKey)
    await gateway.fault({ fault: 'hold_before', on: 'create', times: 2 })
    const held = [pay(busy, busy), pay(busy, busy)]
    await waitUntil('two are held', async () => (await gateway.state()).held.length === 2)

    const shed = await pay(busy, busy, shedKey)
    expect([shed.status, shed.body.code]).toEqual([503, 'overloaded'])
    expect(shed.body).toMatchObject({ retryable: true, request_id: shed.headers.get('request-id') })
    expect(shed.headers.get('content-type')).toBe('application/problem+json')
    expect(shed.headers.get('cache-control')).toBe('no-store')
    expect(shed.headers.get('retry-after')).toBe('1')
    expect(shed.headers.get('stripe-should-retry')).toBe('true')
    expect(await stateOf(busy, busy, shedKey)).toBe('none')
    // Alarms go by it.
    expect(await busy.service.metrics.metrics()).toContain('payments_refusals_total{code="overloaded"} 1\n')
    const work = [
      busy.post(`/v1/payments/${paid.body.id}/refunds`, { amount: 1 }),
      busy.post('/v1/transfers', { destination: busy.accountId, amount: 1, currency: 'EUR' }),
    ]
    expect(statusesOf(await Promise.all(work))).toEqual([503, 503])

    const replayed = await pay(busy, busy, paidKey)
    expect([replayed.status, replayed.text]).toEqual([201, paid.text])
    expect(replayed.headers.get('idempotent-replayed')).toBe('true')
    const reads = ['/v1/balances', '/v1/payments', `/v1/payments/${paid.body.id}`, '/v1/events', '/readyz']
    expect(statusesOf(await Promise.all(reads.map((path) => busy.ask(path))))).toEqual(reads.map(() => 200))

    await gateway.release()
    expect(statusesOf(await Promise.all(held))).toEqual([201, 201])
    const later = await pay(busy, busy, shedKey)
    expect([later.status, later.headers.get('idempotent-replayed')]).toEqual([201, null])
  })
})
