import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { derivedKey } from '../../src/entries/keys.ts'
import { type CallStep, OnlyonceError, type Op, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { addEvidence, completer, reconciler } from '../../src/workers/index.ts'
import { openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { rowOf, SIGNED, VOID } from './remembered.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

type Body = (op: Op, charge: CallStep<string>) => Promise<unknown>

/** What the code does with the payment that it finds, in place of coming to the call first. */
const LOOKS_ASIDE: Readonly<Record<string, { readonly body: Body; readonly why: string }>> = {
  'throws before the call': {
    body: () => Promise.reject(new Error('the configuration is away')),
    why: 'Error: the configuration is away',
  },
  'answers "not now" before the call': {
    body: async (op) => {
      await op.transaction('created', async () => 1)
      return reply(503, 'later')
    },
    why: 'http_503',
  },
  'has another step where the durable one was': {
    body: (op) => op.transaction('made', async () => 1),
    why: 'The step created (atomic) is durable, and the code asks for made (atomic) in its place.',
  },
  'has an atomic step in place of the call': {
    body: async (op, charge) => {
      await op.transaction('created', async () => 1)
      await op.transaction('checked', async () => 1)
      return await op.call('charged', charge)
    },
    why: 'operation_changed: The call of step charged is in doubt, and the code asks for checked in its place.',
  },
  'has another call in its place': {
    body: async (op, charge) => {
      await op.transaction('created', async () => 1)
      return await op.call('charged_anew', charge)
    },
    why: 'operation_changed: The call of step charged is in doubt, and the code asks for charged_anew in its place.',
  },
  'ends without the call': {
    body: async (op) => {
      await op.transaction('created', async () => 1)
      return reply(201, 'done')
    },
    why: 'operation_changed: The call of step charged is in doubt, and the code never asks for it.',
  },
  'undoes what was done': {
    body: async (op) => {
      await op.transaction('created', async () => 1)
      op.compensate('uncreated', async () => 1)
      return await op.undo(reply(409, 'undone'))
    },
    why: 'operation_changed: The call of step charged is in doubt, and the code asks for undo in its place.',
  },
}

/** A payment whose call was made, and not answered. `code` is what the workers have of it. */
async function paymentInDoubt(
  options: { readonly looks?: readonly number[]; readonly find?: 'pending' | 'not_found' } = {},
) {
  const name = `payments.${randomUUID()}`
  const charges: string[] = []
  const code: { body: Body; lost: boolean } = { body: soundly, lost: true }
  const charge: CallStep<string> = {
    idempotent: options.find === 'not_found',
    call: async ({ key }) => {
      charges.push(key)
      if (code.lost) throw new Error('socket hang up')
      return `ch_${charges.length}`
    },
    ...(options.find !== undefined && { find: async () => ({ status: options.find! }) }),
  }
  const pay = operation(name, (op) => code.body(op, charge))
  const once = shop.open({ reconcileAfterMs: options.looks ?? [1, 1], operations: [pay] })
  const call = { account: 'acct_1', key: randomUUID(), input: null }
  const id = { ...call, operation: name }
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  const keyOf = (generation: number) => derivedKey({ ...id, step: 'charged', generation })
  return { once, desk: operator(once), pay, call, id, code, charges, keyOf }
}

type InDoubt = Awaited<ReturnType<typeof paymentInDoubt>>

const soundly: Body = async (op, charge) => {
  await op.transaction('created', async () => 1)
  const charged = await op.call('charged', charge)
  return await op.transaction('settled', async () => reply(201, { charged }))
}

async function lookUntilParked({ once, id }: InDoubt): Promise<void> {
  await waitUntil('it is parked', async () => {
    await reconciler(once).runOnce()
    return (await once.explain(id)).state === 'parked'
  })
}

/** The owner of a look vanishes: its lease is over, and it has written nothing. */
async function lookAndVanish({ once, id, code }: InDoubt): Promise<void> {
  const { body } = code
  code.body = () => Promise.reject(new OnlyonceError('lease_lost'))
  await change(id.key, 'look_at = now()')
  await reconciler(once).runOnce()
  code.body = body
  await change(id.key, `lease_until = clock_timestamp() - interval '1 hour'`)
}

async function change(key: string, set: string): Promise<void> {
  await shop.observer.query(`UPDATE onlyonce.records SET ${set} WHERE key = $1`, [key])
}

describe('a call in doubt stays known', () => {
  test.each(Object.entries(LOOKS_ASIDE))('to a look whose code %s', async (_, { body, why }) => {
    const payment = await paymentInDoubt()
    const { desk, id, code, charges, keyOf } = payment
    const { inDoubt } = await desk.show(id)
    expect(inDoubt).toMatchObject({ step: 'charged', key: keyOf(0), generation: 0 })
    code.body = body
    await lookUntilParked(payment)
    const shown = await desk.show(id)
    expect(shown).toMatchObject({ state: 'parked', inDoubt })
    expect(shown.why).toContain(why)
    expect(charges).toHaveLength(1)
  })

  test('so that the operator can declare it void, and the next call has a new key', async () => {
    const payment = await paymentInDoubt()
    const { once, desk, id, pay, call, code, charges, keyOf } = payment
    code.body = LOOKS_ASIDE['throws before the call']!.body
    await lookUntilParked(payment)
    Object.assign(code, { body: soundly, lost: false })
    await desk.resolve(id, VOID)
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: { charged: 'ch_2' } })
    expect(charges).toEqual([keyOf(0), keyOf(1)])
  })

  test('so that evidence about it is looked at at once', async () => {
    const payment = await paymentInDoubt({ looks: [1, 600_000] })
    const { once, id, code, charges, keyOf } = payment
    code.body = LOOKS_ASIDE['throws before the call']!.body
    await waitUntil('a worker has looked', async () => {
      await reconciler(once).runOnce()
      return (await rowOf(shop, id.key)).fence > 1
    })
    code.body = soundly
    const told = await addEvidence(once, { account: id.account, key: keyOf(0), result: 'ch_told' })
    expect(told).toEqual({ accepted: true, why: 'record_waits' })
    await reconciler(once).runOnce()
    expect(await once.run(payment.pay, payment.call)).toMatchObject({
      outcome: 'replayed',
      value: { charged: 'ch_told' },
    })
    expect(charges).toHaveLength(1)
  })

  test('while its looks vanish, and when too many have', async () => {
    const payment = await paymentInDoubt()
    const { once, desk, id, code, keyOf } = payment
    await lookAndVanish(payment)
    const inDoubt = { step: 'charged', key: keyOf(0), generation: 0 }
    expect(await desk.show(id)).toMatchObject({ state: 'in_progress', inDoubt })
    code.body = () => Promise.reject(new OnlyonceError('lease_lost'))
    for (let owners = 0; owners < LIMITS.ownersMax; owners += 1) {
      await change(id.key, `lease_until = clock_timestamp() - interval '1 hour'`)
      await completer(once).runOnce()
    }
    expect(await desk.show(id)).toMatchObject({
      state: 'parked',
      record: { failure: { code: 'owners_exhausted' } },
      inDoubt,
    })
    await desk.unpark(id, SIGNED)
    expect((await desk.show(id)).inDoubt).toMatchObject(inDoubt)
  })

  test.each(['and the operation goes on', 'and the operation ends'] as const)(
    'until it has its result, %s',
    async (how) => {
      const payment = await paymentInDoubt()
      const { once, desk, id, code, keyOf } = payment
      await addEvidence(once, { account: id.account, key: keyOf(0), result: 'ch_told' })
      if (how === 'and the operation goes on')
        code.body = async (op, charge) => {
          await op.transaction('created', async () => 1)
          await op.call('charged', charge)
          await op.transaction('booked', async () => 1)
          throw new OnlyonceError('lease_lost')
        }
      await reconciler(once).runOnce()
      const state = how === 'and the operation goes on' ? 'in_progress' : 'completed'
      expect(await desk.show(id)).toMatchObject({ state, inDoubt: null, record: { waitsFor: null } })
    },
  )

  test('until it is proved that it was not executed', async () => {
    const payment = await paymentInDoubt({ find: 'not_found' })
    const { once, desk, id } = payment
    await change(
      id.key,
      `deadline_at = now() - interval '1 minute', sent_until = now() - interval '1 day', look_at = now()`,
    )
    await reconciler(once).runOnce()
    expect(await desk.show(id)).toMatchObject({
      state: 'retryable',
      inDoubt: null,
      record: { waitsFor: null },
    })
  })

  test('as the call in place of a void one, where its owner vanished and the next one did not come to it', async () => {
    const payment = await paymentInDoubt({ find: 'pending', looks: [600_000, 600_000] })
    const { once, desk, id, pay, call, code, charges, keyOf } = payment
    await desk.resolve(id, VOID)
    // The other side does not tell about the void one: nothing is sent.
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
    expect((await desk.show(id)).inDoubt).toMatchObject({ key: keyOf(0), generation: 0 })
    await lookAndVanish(payment)
    code.body = LOOKS_ASIDE['throws before the call']!.body
    await completer(once).runOnce()
    // The owner that vanished may have sent it.
    expect((await desk.show(id)).inDoubt).toMatchObject({ key: keyOf(1), generation: 1 })
    code.body = soundly
    await change(id.key, 'look_at = now()')
    await reconciler(once).runOnce()
    expect(charges).toEqual([keyOf(0)])
  })
})
