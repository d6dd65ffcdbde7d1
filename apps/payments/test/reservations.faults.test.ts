/** What requests hold of a payment that were never executed, and who gets it. */
import { callRefused, notExecuted } from 'onlyonce'
import { operator } from 'onlyonce/operator'
import { beforeAll, describe, expect, it } from 'vitest'
import { verify } from '../ledger/index.ts'
import { type Decision, decide, sweeper } from '../payments/index.ts'
import { verifyLedger } from './books.ts'
import { captureOf, refundOf } from './charges.ts'
import { openSandbox, type Sandbox } from './sandbox.ts'
import { openTestService, type TestService } from './service.ts'

const TEA = { amount: 1_000, currency: 'EUR', payment_method: 'pm_card_visa' }
const HELD = { ...TEA, capture_method: 'manual' }
const GIVEN_UP = [422, 'request_given_up']
const SIGNED = { by: 'ann', why: 'looked it up at the processor' }

let sandbox: Sandbox
let shop: TestService
/** The same service, whose processor cannot be reached, whose answers are lost, and who is not understood. */
let cutOff: TestService
let lossy: TestService
let misread: TestService

beforeAll(async () => {
  // It shows at once what it has done: operators decide at once here.
  sandbox = await openSandbox({}, { visibleWithinMs: 1 })
  shop = await openTestService({ gateways: { test: sandbox.client } })
  const withCalls = (call: () => Promise<never>) =>
    openTestService({
      database: shop.database,
      gateways: {
        test: {
          ...sandbox.client,
          ...{ capture: call, void: call, refund: call, findCapture: call, findVoid: call, findRefund: call },
        },
      },
    })
  cutOff = await withCalls(async () => {
    throw notExecuted(new Error('The processor is away.'))
  })
  lossy = await withCalls(async () => {
    throw new Error('The answer was lost.')
  })
  misread = await withCalls(async () => {
    throw callRefused(new Error('The processor does not understand it.'))
  })
})

const pay = async (body: object): Promise<string> => (await shop.post('/v1/payments', body)).body.id
const find = async (id: string) => (await shop.ask(`/v1/payments/${id}`)).body

let asked = 0
/** One request, and how to send it again with the same key. */
function request(id: string, what: 'capture' | 'cancel' | 'refunds', body: object = {}) {
  asked += 1
  const key = `reservation-${asked}-of-${what}`
  const path = `/v1/payments/${id}/${what}`
  const operation = { capture: 'payments.capture', cancel: 'payments.cancel', refunds: 'refunds.create' }[
    what
  ]
  const record = { account: shop.account, operation, key }
  const send = async (at: TestService) => await at.post(path, body, { apiKey: shop.apiKey, key })
  return { key, record, send, codeOf: async (at: TestService) => outcome(await send(at)) }
}

const outcome = ({ status, body }: { status: number; body: { code?: string } }) => [status, body.code]

describe('a request that was never executed', () => {
  it('and was to cancel a payment gives way to a capture', async () => {
    const id = await pay(HELD)
    const cancel = request(id, 'cancel')
    expect((await cancel.send(cutOff)).status).toBe(503)
    expect((await shop.post(`/v1/payments/${id}/capture`, { amount: 400 })).status).toBe(200)
    expect(await cancel.codeOf(shop)).toEqual(GIVEN_UP)
    expect(await find(id)).toMatchObject({ status: 'partially_captured', amount_captured: 400 })
    expect((await shop.post(`/v1/payments/${id}/cancel`, {})).body).toMatchObject({ status: 'succeeded' })
  })

  it('and was to capture a payment gives way to what needs its share, and to nothing else', async () => {
    const id = await pay(HELD)
    const first = request(id, 'capture', { amount: 600, final: false })
    expect((await first.send(cutOff)).status).toBe(503)
    expect((await shop.post(`/v1/payments/${id}/capture`, { amount: 100, final: false })).status).toBe(200)
    expect((await operator(shop.service.once).show(first.record)).state).toBe('retryable')
    expect((await shop.post(`/v1/payments/${id}/capture`, {})).body).toMatchObject({ amount_captured: 1_000 })
    expect(await first.codeOf(shop)).toEqual(GIVEN_UP)
  })

  it('and was to capture all of a payment gives way to a cancellation', async () => {
    const id = await pay(HELD)
    const capture = request(id, 'capture', { final: true })
    expect((await capture.send(cutOff)).status).toBe(503)
    expect((await shop.post(`/v1/payments/${id}/cancel`, {})).body).toMatchObject({ status: 'canceled' })
    expect(await capture.codeOf(shop)).toEqual(GIVEN_UP)
  })

  it('and was to refund a payment gives way to other refunds', async () => {
    const id = await pay(TEA)
    const [first, second] = [request(id, 'refunds', { amount: 300 }), request(id, 'refunds', { amount: 400 })]
    for (const one of [first, second]) expect((await one.send(cutOff)).status).toBe(503)
    expect((await shop.post(`/v1/payments/${id}/refunds`, { amount: 500 })).status).toBe(201)
    // So much as was needed: the second may still come back.
    expect(await first.codeOf(shop)).toEqual(GIVEN_UP)
    expect((await second.send(shop)).status).toBe(201)
    const { data } = (await shop.ask(`/v1/payments/${id}/refunds`)).body
    const told = data.map(({ status, amount, decline }: Record<string, { code?: string }>) => [
      status,
      amount,
      decline?.code,
    ])
    expect(told).toEqual([
      ['succeeded', 500, undefined],
      ['succeeded', 400, undefined],
      ['failed', 300, 'not_executed'],
    ])
  })

  it('stays what it is where nobody needs what it holds', async () => {
    const id = await pay(HELD)
    const cancel = request(id, 'cancel')
    await cancel.send(cutOff)
    expect((await cancel.send(shop)).body).toMatchObject({ status: 'canceled' })
  })

  it('and comes back at the same moment wins, or gives way: never both', async () => {
    for (let round = 0; round < 8; round += 1) {
      const id = await pay(HELD)
      const cancel = request(id, 'cancel')
      await cancel.send(cutOff)
      const [back, captured] = await Promise.all([
        cancel.send(shop),
        shop.post(`/v1/payments/${id}/capture`, {}),
      ])
      const { status } = await find(id)
      if (captured.status === 200) expect([...outcome(back), status]).toEqual([...GIVEN_UP, 'succeeded'])
      else expect([captured.body.code, back.status, status]).toEqual(['payment_state', 200, 'canceled'])
    }
    await verifyLedger(shop.database, sandbox.gateway)
  })
})

describe('a request of which nobody knows what became of it', () => {
  it('keeps what it holds', async () => {
    for (const at of [lossy, misread]) {
      const [canceled, refunded] = [await pay(HELD), await pay(TEA)]
      await request(canceled, 'cancel').send(at)
      await request(refunded, 'refunds', { amount: 600 }).send(at)
      expect(outcome(await shop.post(`/v1/payments/${canceled}/capture`, {}))).toEqual([422, 'payment_state'])
      const more = await shop.post(`/v1/payments/${refunded}/refunds`, { amount: 600 })
      expect(outcome(more)).toEqual([422, 'amount_too_large'])
    }
  })
})

describe('an operator', () => {
  const decideOn = (record: Parameters<typeof decide>[1], decision: object) =>
    decide(shop.service, record, { ...SIGNED, ...decision } as Decision)

  async function parked(what: 'capture' | 'cancel' | 'refunds', body: object = {}) {
    const id = await pay(what === 'refunds' ? TEA : HELD)
    const asking = request(id, what, body)
    expect(await asking.codeOf(misread)).toEqual([409, 'parked'])
    return { id, ...asking }
  }

  /** What the ledger has of a payment's account, less what it had before. */
  async function watchBooks() {
    const read = async () => {
      const { body } = await shop.ask('/v1/balances')
      const { available, pending } = body.data[0] ?? { available: 0, pending: 0 }
      return [available, pending]
    }
    const before = await read()
    return async () => (await read()).map((now, i) => now - before[i]!)
  }

  it('who tells that a parked capture was executed settles it and posts it', async () => {
    const { id, record, send } = await parked('capture', { amount: 700, final: true })
    const since = await watchBooks()
    await captureOf(sandbox.client, shop, record)
    await decideOn(record, { decision: 'executed' })
    expect(await since()).toEqual([700, -1_000])
    expect(await find(id)).toMatchObject({ status: 'succeeded', amount_captured: 700 })
    const replayed = await send(shop)
    expect([replayed.status, replayed.body.amount_captured]).toEqual([200, 700])
    expect((await operator(shop.service.once).show(record)).audit).toMatchObject([
      { ...SIGNED, action: 'resolve', from: 'parked' },
    ])
  })

  it('who tells that a parked refund was executed settles it and posts it', async () => {
    const { id, record, codeOf } = await parked('refunds', { amount: 300 })
    const since = await watchBooks()
    await expect(decideOn(record, { decision: 'executed' })).rejects.toThrow('gateway_id')
    const gatewayId = await refundOf(sandbox.client, shop, record)
    await decideOn(record, { decision: 'executed', gateway_id: gatewayId })
    expect(await since()).toEqual([-300, 0])
    expect(await find(id)).toMatchObject({ amount_refunded: 300 })
    expect((await codeOf(shop))[0]).toBe(201)
    expect((await shop.post(`/v1/payments/${id}/refunds`, { amount: 700 })).status).toBe(201)
  })

  it.each([
    ['capture', { amount: 700 }, 'capture_failed', 200],
    ['cancel', {}, 'cancel_failed', 200],
    ['refunds', { amount: 700 }, 'refund_failed', 201],
  ] as const)(
    'who tells that a parked request was not executed lets go of what it holds: %s',
    async (what, body, code, after) => {
      const { id, record, codeOf } = await parked(what, body)
      const since = await watchBooks()
      await decideOn(record, { decision: 'not_executed' })
      expect(await since()).toEqual([0, 0])
      expect(await codeOf(shop)).toEqual([422, code])
      expect((await shop.post(`/v1/payments/${id}/${what}`, {})).status).toBe(after)
    },
  )

  it('who comes too late changes nothing', async () => {
    const { id, record } = await parked('capture', { amount: 700 })
    const since = await watchBooks()
    const late = decideOn(record, { decision: 'executed', fence: 99 })
    await expect(late).rejects.toMatchObject({ code: 'record_changed' })
    expect(await since()).toEqual([0, 0])
    expect(await find(id)).toMatchObject({ status: 'requires_capture', amount_capturable: 300 })
    await decideOn(record, { decision: 'not_executed' })
  })

  it('who ends a request that was not executed lets go of what it holds', async () => {
    const id = await pay(TEA)
    const refund = request(id, 'refunds', {})
    await refund.send(cutOff)
    await decideOn(refund.record, { decision: 'not_executed' })
    expect(await refund.codeOf(shop)).toEqual(GIVEN_UP)
    expect((await shop.post(`/v1/payments/${id}/refunds`, {})).status).toBe(201)
  })

  it('who gives the reply elsewhere is heard by a worker: it settles and posts what was told', async () => {
    const told = await parked('refunds', { amount: 300 })
    const denied = await parked('capture', { amount: 700 })
    const since = await watchBooks()
    const desk = operator(shop.service.once)
    await desk.resolve(told.record, { ...SIGNED, reply: { status: 201, body: '{}' } })
    await desk.resolve(denied.record, { ...SIGNED, reply: { status: 422, body: '{}' } })
    for (const table of ['captures', 'refunds', 'payments']) {
      await shop.service.pool.query(
        `UPDATE payments.${table} SET created_at = created_at - interval '2 minutes'`,
      )
    }
    await sweeper(shop.service).runOnce()
    expect(await since()).toEqual([-300, 0])
    expect(await find(told.id)).toMatchObject({ amount_refunded: 300 })
    expect(await find(denied.id)).toMatchObject({ amount_capturable: 1_000 })
  })

  it('leaves a ledger that can be proved', async () => {
    expect(await verify(shop.service.pool)).toMatchObject({ ok: true, problems: [] })
  })
})
