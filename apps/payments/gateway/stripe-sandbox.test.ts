import { randomUUID } from 'node:crypto'
import { type Onlyonce, onlyonce, operation, reply } from 'onlyonce'
import { derivedKey } from 'onlyonce/keys'
import { type PostgresTx, postgres } from 'onlyonce/postgres'
import { addEvidence, reconciler } from 'onlyonce/workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { type FaultName, type GatewayProcess, startGateway } from '../../gateway/index.ts'
import { openReceiver } from '../../gateway/test/under-test.ts'
import type { Authorized, AuthorizeOrder, Gateway, Movement } from './index.ts'
import { evidenceOf, stripeGateway } from './stripe.ts'

const ACCOUNT = 'acct_1:test'
const LOOKS = Array.from({ length: 30 }, () => 20)
let sandbox: GatewayProcess
let gateway: Gateway
/** Gives up soon: operations find out what became of a call, however busy the machine is. */
let impatient: Gateway
let database: FreshDatabase
let events: Awaited<ReturnType<typeof openReceiver>>

beforeAll(async () => {
  events = await openReceiver()
  sandbox = await startGateway({ searchLagMs: 200, webhook: { url: events.url, secret: 'whsec_test' } })
  cleanUpLater(() => sandbox.stop())
  gateway = open(10_000)
  impatient = open(900)
  database = await freshDatabase()
})

function open(timeoutMs: number): Gateway {
  const { apiKey, host, port } = sandbox
  return stripeGateway({ secretKey: apiKey, mode: 'test', host, port, protocol: 'http', timeoutMs })
}

const order = (changes: Partial<AuthorizeOrder> = {}): AuthorizeOrder => ({
  account: ACCOUNT,
  payment: 'pay_1',
  amount: 1_000,
  currency: 'EUR',
  payment_method: 'pm_card_visa',
  capture: 'manual',
  reference: null,
  ...changes,
})

const context = (
  key: string = derivedKey({ account: 'a', operation: 'o', key: randomUUID(), step: 's' }),
) => ({
  key,
  signal: new AbortController().signal,
})

function openOnce(): Onlyonce<PostgresTx> {
  const once = onlyonce({
    store: postgres({ pool: database.pool({ max: 10 }) }),
    secret: 'the-secret-of-the-tests-of-gateways-0123456789',
    reconcileAfterMs: LOOKS,
  })
  cleanUpLater(() => once.close({ maxMs: 1_000 }))
  return once
}

/** Holds, takes in two parts and gives some back; and holds again, and lets go. */
const pay = operation('payments.life', async (op, _: null) => {
  const { timeoutMs, visibleWithinMs, keyLifetimeMs } = impatient
  const limits = { timeoutMs, visibleWithinMs, keyLifetimeMs }
  const held = (await op.call('authorized', {
    ...limits,
    call: (by) => impatient.authorize(order(), by),
    find: (by) => impatient.findAuthorization(order(), by),
  })) as Authorized
  const { gateway_id: gatewayId } = held
  for (const [step, amount, final] of [
    ['first', 300, false],
    ['second', 500, true],
  ] as const) {
    const part = { gateway_id: gatewayId, capture: `cap_${step}`, amount, currency: 'EUR', final }
    await op.call(step, {
      ...limits,
      call: (by) => impatient.capture(part, by),
      find: (by) => impatient.findCapture(part, by),
    })
  }
  const back = {
    account: ACCOUNT,
    gateway_id: gatewayId,
    refund: 'ref_1',
    amount: 200,
    currency: 'EUR',
    reason: null,
  }
  const refunded = await op.call('refunded', {
    ...limits,
    call: (by) => impatient.refund(back, by),
    find: (by) => impatient.findRefund(back, by),
  })
  const other = (await op.call('held', {
    ...limits,
    call: (by) => impatient.authorize(order(), by),
    find: (by) => impatient.findAuthorization(order(), by),
  })) as Authorized
  const leave = { gateway_id: other.gateway_id, reason: null }
  const left = await op.call('left', {
    ...limits,
    call: (by) => impatient.void(leave, by),
    find: (by) => impatient.findVoid(leave, by),
  })
  return reply(201, [held.status, refunded.status, left.status])
})

const STEPS = ['authorized', 'first', 'second', 'refunded', 'held', 'left'] as const
const DONE = [
  'authorization 1000',
  'capture 300',
  'capture 500',
  'refund 200',
  'authorization 1000',
  'void 1000',
]

/** A payment to be made, and the keys that its calls will have. */
function makeCall() {
  const call = { account: ACCOUNT, key: randomUUID(), input: null }
  return { call, keyOf: (step: string) => derivedKey({ ...call, operation: 'payments.life', step }) }
}

/** What the journal has of a payment, by the keys of its calls. */
async function movedBy(keys: readonly string[]): Promise<string[]> {
  const journal = await sandbox.journal()
  return journal.filter(({ key }) => keys.includes(key ?? '')).map(({ kind, amount }) => `${kind} ${amount}`)
}

describe('with the sandbox', () => {
  it('holds, takes in parts, lets go, gives back, and finds all of it again', async () => {
    const by = context()
    const held = (await gateway.authorize(order(), by)) as Authorized
    expect(held).toMatchObject({ status: 'authorized', amount: 1_000, currency: 'EUR' })
    expect(Date.parse(held.capture_before!)).toBeGreaterThan(Date.now() + 6 * 24 * 3_600_000)
    expect(await gateway.authorize(order(), by)).toEqual(held)
    await waitUntil(
      'search has it',
      async () => (await gateway.findAuthorization(order(), by)).status === 'found',
    )
    expect(await gateway.findAuthorization(order(), by)).toEqual({ status: 'found', result: held })

    const { gateway_id: gatewayId } = held
    const part = { gateway_id: gatewayId, capture: 'cap_1', amount: 300, currency: 'EUR', final: false }
    const first = context()
    expect(await gateway.findCapture(part, first)).toEqual({ status: 'not_found' })
    const captured = await gateway.capture(part, first)
    expect(captured).toMatchObject({ status: 'captured', amount: 300 })
    expect(await gateway.findCapture(part, first)).toEqual({ status: 'found', result: captured })
    expect(await gateway.capture({ ...part, capture: 'cap_2', amount: 701 }, context())).toMatchObject({
      status: 'declined',
      code: 'amount_too_large',
    })

    const back = {
      account: ACCOUNT,
      gateway_id: gatewayId,
      refund: 'ref_1',
      amount: 100,
      currency: 'EUR',
      reason: null,
    }
    const given = context()
    const refunded = await gateway.refund(back, given)
    expect(refunded).toMatchObject({ status: 'refunded', amount: 100 })
    expect(await gateway.findRefund(back, given)).toEqual({ status: 'found', result: refunded })
    expect(await gateway.findRefund(back, context())).toEqual({ status: 'not_found' })

    const other = (await gateway.authorize(order(), context())) as Authorized
    const leave = { gateway_id: other.gateway_id, reason: 'abandoned' } as const
    expect(await gateway.findVoid(leave, context())).toEqual({ status: 'not_found' })
    expect(await gateway.void(leave, context())).toMatchObject({ status: 'voided' })
    expect(await gateway.void(leave, context())).toMatchObject({ status: 'voided' })
    expect(await gateway.findVoid(leave, context())).toMatchObject({ status: 'found' })
    expect(await gateway.capture({ ...part, gateway_id: other.gateway_id }, context())).toMatchObject({
      status: 'declined',
      code: 'payment_intent_unexpected_state',
    })
  })

  it.each([
    [
      'pm_card_chargeDeclinedInsufficientFunds',
      { code: 'card_declined', decline_code: 'insufficient_funds', advice: 'try_again_later' },
    ],
    ['pm_card_authenticationRequired', { code: 'authentication_required' }],
    ['pm_of_nobody', { code: 'payment_method_invalid', gateway_id: null }],
  ])('is told no: %s', async (paymentMethod, expected) => {
    const by = context()
    const declined = await gateway.authorize(order({ payment_method: paymentMethod }), by)
    expect(declined).toMatchObject({ status: 'declined', ...expected })
    expect(await gateway.authorize(order({ payment_method: paymentMethod }), by)).toEqual(declined)
  })

  it('never takes one key for two orders, nor a wrong API key for a charge', async () => {
    const by = context()
    await gateway.authorize(order(), by)
    await expect(gateway.authorize(order({ amount: 999 }), by)).rejects.toThrow('idempotency_error')
    const { host, port } = sandbox
    const stranger = stripeGateway({
      secretKey: 'sk_test_stranger',
      mode: 'test',
      host,
      port,
      protocol: 'http',
    })
    await expect(stranger.authorize(order(), context())).rejects.toMatchObject({ code: 'not_executed' })
  })

  it('tells all movements of a time', async () => {
    const by = context()
    const taken = (await gateway.authorize(
      order({ capture: 'automatic', payment: 'pay_m' }),
      by,
    )) as Authorized
    const found: Movement[] = []
    const now = Date.now()
    for await (const movement of gateway.movements({
      from: new Date(now - 60_000),
      to: new Date(now + 60_000),
    })) {
      found.push(movement)
    }
    const journal = await sandbox.journal()
    const moved = (kind: string) =>
      journal.filter((entry) => entry.kind === kind).reduce((sum, { amount }) => sum + amount, 0)
    const told = (kind: string) =>
      found.filter((movement) => movement.kind === kind).reduce((sum, entry) => sum + entry.moved, 0)
    expect([told('payment'), told('refund')]).toEqual([moved('capture'), moved('refund')])
    expect(found).toContainEqual(
      expect.objectContaining({ gateway_id: taken.gateway_id, reference: 'pay_m', moved: 1_000 }),
    )
  })
})

describe('whatever goes wrong with a call', () => {
  const STRUCK = STEPS.filter((step) => step !== 'held')
  const FAULTS: readonly FaultName[] = [
    'lose_before',
    'reset_before',
    'error_before',
    'busy',
    'hold_before',
    'error_after',
    'hold_after',
    'lose_after',
    'reset_after',
    'truncate',
    'cut',
    'html',
    'html_ok',
    'wrong_amount',
    'wrong_currency',
  ]

  it('each call is made once, and every payment ends well', async () => {
    const once = openOnce()
    const payments = FAULTS.flatMap((fault) => STRUCK.map((step) => ({ fault, step, ...makeCall() })))
    await sandbox.fault(...payments.map(({ fault, step, keyOf }) => ({ fault, key: keyOf(step) })))
    await Promise.all(payments.map(({ call }) => once.run(pay, call).catch(() => null)))
    const open = new Set(payments)
    await waitUntil('all are settled', async () => {
      await sandbox.release()
      await reconciler(once).runOnce()
      for (const payment of open) {
        const result = await once.run(pay, payment.call).catch(() => null)
        if (result !== null && 'status' in result && result.status === 201) open.delete(payment)
      }
      return open.size === 0
    })
    // Each of them has met its fault.
    expect((await sandbox.state()).faults).toEqual([])
    const ends = payments.map(async ({ fault, step, keyOf }) => ({
      fault,
      step,
      moved: await movedBy(STEPS.map(keyOf)),
    }))
    expect(await Promise.all(ends)).toEqual(payments.map(({ fault, step }) => ({ fault, step, moved: DONE })))
  })

  it('a processor that dies after it charged, and comes back, has charged once', async () => {
    const once = openOnce()
    const { call, keyOf } = makeCall()
    await sandbox.fault({ fault: 'kill_after_journal', key: keyOf('authorized') })
    // The first call is in doubt. That the next ones are not executed says nothing about it.
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    await sandbox.restart()
    await waitUntil('it is settled', async () => {
      await reconciler(once).runOnce()
      const result = await once.run(pay, call)
      return 'status' in result && result.status === 201
    })
    expect(await movedBy(STEPS.map(keyOf))).toEqual(DONE)
  })

  it('a stored 500 of something that was never done stays in doubt, and nothing is charged', async () => {
    const once = openOnce()
    const { call, keyOf } = makeCall()
    const key = keyOf('authorized')
    await sandbox.fault({ fault: 'error_instead', key })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect(await movedBy([key])).toEqual([])
  })
})

describe('webhooks of the sandbox', () => {
  it('prove each call, in the form that it returned', async () => {
    const [hold, take, leave, back] = [context(), context(), context(), context()]
    const held = (await gateway.authorize(order(), hold)) as Authorized
    const { gateway_id: gatewayId } = held
    const captured = await gateway.capture(
      { gateway_id: gatewayId, capture: 'cap_1', amount: 400, currency: 'EUR', final: true },
      take,
    )
    const refunded = await gateway.refund(
      { account: ACCOUNT, gateway_id: gatewayId, refund: 'ref_1', amount: 50, currency: 'EUR', reason: null },
      back,
    )
    const other = (await gateway.authorize(order(), context())) as Authorized
    const voided = await gateway.void({ gateway_id: other.gateway_id, reason: null }, leave)
    const proofs = new Map<string, unknown>()
    await waitUntil('all were announced', async () => {
      for (const { event } of events.received) {
        for (const { key, result } of evidenceOf(event)) proofs.set(key, result)
      }
      return [hold, take, leave, back].every(({ key }) => proofs.has(key))
    })
    expect(proofs.get(hold.key)).toEqual(held)
    expect(proofs.get(take.key)).toEqual(captured)
    expect(proofs.get(back.key)).toEqual(refunded)
    expect(proofs.get(leave.key)).toEqual(voided)
  })

  it('settle what nobody answered', async () => {
    const once = openOnce()
    const { call, keyOf } = makeCall()
    const key = keyOf('authorized')
    await sandbox.fault({ fault: 'error_after', key }, { fault: 'lag', key, ms: 3_600_000 })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    await waitUntil('it is settled', async () => {
      const proofs = events.received.flatMap(({ event }) => evidenceOf(event))
      for (const proof of proofs.filter((known) => known.key === key)) {
        await addEvidence(once, proof)
      }
      await reconciler(once).runOnce()
      const result = await once.run(pay, call)
      return 'status' in result && result.status === 201
    })
    expect(await movedBy(STEPS.map(keyOf))).toEqual(DONE)
  })
})
