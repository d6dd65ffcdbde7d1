import { describe, expect, test } from 'vitest'
import { callRefused, notExecuted, type Onlyonce, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { leaveEffect, makeCall, openShop } from '../contract/shop.ts'

interface Charge {
  readonly id: string
  readonly amount: number
}

/** A processor in this process that does the same key once, and counts. */
function makeProcessor() {
  const charges = new Map<string, Charge>()
  return {
    charges,
    async charge(amount: number, key: string): Promise<Charge> {
      const known = charges.get(key)
      if (known !== undefined) return known
      const charge = { id: `ch_${charges.size + 1}`, amount }
      charges.set(key, charge)
      return charge
    },
  }
}

const callOf = (changes: Partial<{ key: string }> = {}) => {
  const { account, key } = makeCall(changes)
  return { account, key, input: { amount: 5 } }
}

describe('an operation that writes, calls and writes', () => {
  const processor = makeProcessor()
  const pay = operation('payments.create', async (op, input: { amount: number }) => {
    const payment = await op.transaction('payment_created', async (tx) => {
      await leaveEffect(tx, `${op.key} created`)
      return { id: op.key, at: new Date(0) }
    })
    const charge = await op.call('charged', {
      call: ({ key }) => processor.charge(input.amount, key),
    })
    return op.transaction('settled', async (tx) => {
      await leaveEffect(tx, `${op.key} settled`)
      return reply(201, { payment: payment.id, at: payment.at, charge: charge.id })
    })
  })

  test('runs once, and replays', async () => {
    const shop = await openShop()
    const once = shop.open()
    await once.start()
    const call = callOf()
    const result = await once.run(pay, call)
    const value = { payment: call.key, at: '1970-01-01T00:00:00.000Z', charge: 'ch_1' }
    expect(result).toEqual({ outcome: 'executed', status: 201, value })
    expect(await once.run(pay, call)).toEqual({ outcome: 'replayed', status: 201, value })
    expect(await shop.open().run(pay, call)).toEqual({ outcome: 'replayed', status: 201, value })
    expect(await shop.countEffects(`${call.key} created`)).toBe(1)
    expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
    expect(processor.charges.size).toBe(1)
    expect(await once.run(pay, { ...call, input: { amount: 6 } })).toEqual({ outcome: 'key_reused' })
  })

  test('twenty callers on two doors come to one result', async () => {
    const shop = await openShop()
    const doors = [shop.open(), shop.open()] as Onlyonce<PostgresTx>[]
    const call = callOf()
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => doors[i % 2]!.run(pay, call)))
    for (const result of results) expect(['executed', 'replayed', 'in_progress']).toContain(result.outcome)
    expect(results.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
    expect(await shop.countEffects(`${call.key} settled`)).toBe(1)
  })
})

test('a call that was not executed leaves it retryable, and a retry goes on', async () => {
  const shop = await openShop()
  const once = shop.open()
  let refusing = true
  let calls = 0
  const pay = operation('payments.refused', async (op, _: unknown) => {
    await op.transaction('created', (tx) => leaveEffect(tx, `${op.key} created`))
    const id = await op.call('charged', {
      call: async () => {
        calls += 1
        if (refusing) throw notExecuted(new Error('busy'))
        return 'ch_1'
      },
    })
    return { id }
  })
  const call = { ...callOf(), input: null }
  // The call was not executed, and the step before it is durable.
  await expect(once.run(pay, call)).rejects.toMatchObject({ code: 'unfinished', executed: 'unknown' })
  expect(calls).toBe(4)
  const story = await once.explain({ ...call, operation: 'payments.refused' })
  expect(story.state).toBe('retryable')
  refusing = false
  expect(await once.run(pay, call)).toEqual({ outcome: 'executed', status: 200, value: { id: 'ch_1' } })
  expect(await shop.countEffects(`${call.key} created`)).toBe(1)
})

test('a lost answer is looked for, and never charged twice without deduplication', async () => {
  const shop = await openShop()
  const once = shop.open()
  let charges = 0
  let visible = false
  const pay = operation('payments.lost', async (op, _: unknown) => {
    const id = await op.call('charged', {
      idempotent: false,
      call: async () => {
        charges += 1
        throw new Error('socket hang up')
      },
      find: async () => (visible ? { status: 'found', result: 'ch_9' } : { status: 'not_found' }),
    })
    return { id }
  })
  const call = { ...callOf(), input: null }
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  visible = true
  expect(charges).toBe(1)
})

test('a reply that says not now rolls its step back and may run again', async () => {
  const shop = await openShop()
  const once = shop.open()
  let ready = false
  const pay = operation('payments.notnow', (op, _: unknown) =>
    op.transaction('created', async (tx) => {
      await leaveEffect(tx, `${op.key} created`)
      return ready ? reply(201, { ok: true }) : reply(429, { ok: false })
    }),
  )
  const call = { ...callOf(), input: null }
  expect(await once.run(pay, call)).toMatchObject({ status: 429 })
  expect(await shop.countEffects(`${call.key} created`)).toBe(0)
  ready = true
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', status: 201 })
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', status: 201 })
})

test('a saga that throws undoes what it did, in reverse, and keeps its answer', async () => {
  const shop = await openShop()
  const once = shop.open()
  const done: string[] = []
  const transfer = operation('transfers.saga', async (op, _: unknown) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', { call: async () => done.push('undo debit') })
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    op.compensate('note_undone', async (tx) => {
      await tx.query('DELETE FROM effects WHERE note = $1', [`${op.key} noted`])
    })
    return op.undo(reply(409, { why: 'the other account is closed' }))
  })
  const call = { ...callOf(), input: null }
  expect(await once.run(transfer, call)).toMatchObject({ outcome: 'executed', status: 409 })
  expect(done).toEqual(['debit', 'undo debit'])
  expect(await shop.countEffects(`${call.key} noted`)).toBe(0)
  expect(await once.run(transfer, call)).toMatchObject({ outcome: 'replayed', status: 409 })
})

const HOUR_MS = 3_600_000

test.each(['unknown', 'parked', 'retryable'] as const)(
  'an operator ends what is %s: it is kept as long',
  async (state) => {
    const shop = await openShop()
    const once = shop.open()
    const step = {
      keyLifetimeMs: 72 * HOUR_MS,
      idempotent: false,
      async call() {
        throw state === 'retryable'
          ? notExecuted()
          : state === 'parked'
            ? callRefused()
            : new Error('hung up')
      },
    }
    const pay = operation(`payments.${state}`, async (op) => {
      if (state !== 'retryable') await op.transaction('created', async () => 1)
      return reply(201, await op.call('charged', step))
    })
    const call = { ...callOf(), input: 1 }
    await once.run(pay, call).catch(() => {})
    const id = { account: call.account, operation: pay.name, key: call.key }
    expect((await once.explain(id)).state).toBe(state)
    const decision = { by: 'ann', why: 'ticket 1', reply: { status: 201, body: '{}' } }
    if (state === 'retryable') await operator(once).giveUp(id, decision)
    else await operator(once).resolve(id, decision)
    const { changedAt, expiresAt } = await once.explain(id)
    expect(Math.round((expiresAt! - changedAt!) / HOUR_MS)).toBe(72)
  },
)

test('a completed record is kept at least as long as the other side remembers keys', async () => {
  const shop = await openShop()
  const once = shop.open()
  const hours = async (key: string) => {
    const { rows } = await shop.observer.query(
      'SELECT round(extract(epoch FROM expires_at - changed_at) / 3600)::int AS hours FROM onlyonce.records WHERE key = $1',
      [key],
    )
    return rows[0].hours
  }
  const pay = operation('payments.kept', async (op, days: number) => {
    await op.call('charged', { call: async () => 'ch_1', keyLifetimeMs: days * 24 * 3_600_000 })
    return op.transaction('settled', async () => reply(201))
  })
  for (const [days, kept] of [
    [3, 72],
    [1, 48],
  ] as const) {
    const call = { ...callOf(), input: days, retentionMs: 48 * 3_600_000 }
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed' })
    expect(await hours(call.key)).toBe(kept)
  }
})
