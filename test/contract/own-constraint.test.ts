import { beforeAll, describe, expect, test } from 'vitest'
import { catchError, leaveEffect, makeCall, makeGate, openShop, POOLERS, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

const INSERT = 'INSERT INTO transfers (reference, amount) VALUES ($1, 5)'

describe.each(POOLERS)('a unique constraint of the user, with pooler %s', (pooler) => {
  test.each([
    ['as the driver made it', (error: unknown) => error],
    ['wrapped by a data layer', (error: unknown) => new Error('Could not save.', { cause: error })],
    ['replaced by an error that tells nothing', () => new Error('Could not save.')],
  ])('a duplicate that fails in it gets the reply of the winner; error %s', async (_, translate) => {
    const [one, two] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = makeCall()
    const gate = makeGate()
    const first = one.transaction(call, async (tx) => {
      await tx.query(INSERT, [call.key])
      await gate.pass()
      return 'the winner'
    })
    await gate.reached
    let failures = 0
    const second = two.transaction(call, async (tx) => {
      await tx.query(INSERT, [call.key]).catch((error: unknown) => {
        failures += 1
        throw translate(error)
      })
      return 'the duplicate'
    })
    await shop.waitForWaiters(1)
    gate.open()
    expect(await first).toEqual({ outcome: 'executed', value: 'the winner' })
    expect(await second).toEqual({ outcome: 'replayed', value: 'the winner' })
    expect(failures).toBe(1)
    const { rows } = await shop.observer.query('SELECT * FROM transfers WHERE reference = $1', [call.key])
    expect(rows).toHaveLength(1)
  })

  test('with another input it is told key_reused, not of the constraint', async () => {
    const [one, two] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = makeCall()
    const gate = makeGate()
    const first = one.transaction(call, async (tx) => {
      await tx.query(INSERT, [call.key])
      await gate.pass()
    })
    await gate.reached
    const second = two.transaction({ ...call, input: 'other' }, async (tx) => {
      await tx.query(INSERT, [call.key])
    })
    await shop.waitForWaiters(1)
    gate.open()
    expect((await first).outcome).toBe('executed')
    expect(await second).toEqual({ outcome: 'key_reused' })
  })

  test('a duplicate that throws for a reason of its own after the winner committed gets the reply too', async () => {
    const [one, two] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = makeCall()
    const gate = makeGate()
    const second = two.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await gate.pass()
      // Such as "insufficient funds", now that the winner has spent them.
      throw new Error('insufficient funds')
    })
    await gate.reached
    const first = await one.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      return 'the winner'
    })
    expect(first.outcome).toBe('executed')
    gate.open()
    expect(await second).toEqual({ outcome: 'replayed', value: 'the winner' })
    expect(await shop.countEffects(call.key)).toBe(1)
  })

  test('a duplicate that throws while the winner is still at work does it no harm', async () => {
    const [one, two] = [shop.open({ store: { pooler } }), shop.open({ store: { pooler } })]
    const call = makeCall()
    const gate = makeGate()
    const first = one.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await gate.pass()
      return 'the winner'
    })
    await gate.reached
    const thrown = new Error('no')
    const second = two.transaction(call, async () => {
      throw thrown
    })
    expect(await catchError(second)).toBe(thrown)
    gate.open()
    expect(await first).toEqual({ outcome: 'executed', value: 'the winner' })
    expect(await shop.countEffects(call.key)).toBe(1)
    expect(await two.transaction(call, async () => '')).toEqual({ outcome: 'replayed', value: 'the winner' })
  })

  test('a violation that no winner explains is the error of the caller', async () => {
    const once = shop.open({ store: { pooler } })
    const call = makeCall()
    await shop.observer.query(INSERT, [call.key])
    const error = await catchError(once.transaction(call, (tx) => tx.query(INSERT, [call.key])))
    expect(error.code).toBe('23505')
    expect(error.constraint).toBe('transfers_pkey')
    expect((await once.explain(call)).state).toBe('retryable')
  })
})
