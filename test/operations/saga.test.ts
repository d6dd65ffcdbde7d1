import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { callRefused, notExecuted, type Op, operation, reply } from '../../src/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { leaveEffect, openShop, type Shop, waitUntil } from '../contract/shop.ts'
import { payment, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

interface Bank {
  readonly done: string[]
  fault: (what: string) => void
  pause: (what: string) => Promise<void>
  move(what: string, key: string): Promise<string>
}

/** Does each key once, and tells what it did in order. */
function makeBank(): Bank {
  const known = new Set<string>()
  return {
    done: [],
    fault: () => {},
    pause: async () => {},
    async move(what, key) {
      this.fault(what)
      if (!known.has(key)) this.done.push(what)
      known.add(key)
      await this.pause(what)
      return `${what} done`
    },
  }
}

/** Takes from one account, gives to another, and takes back what it took when it cannot give. */
function transferWith(bank: Bank, name: string, end: (op: Op) => Promise<unknown>) {
  return operation(name, async (op, _: { amount: number }) => {
    await op.call('debited', { call: ({ key }) => bank.move('debit', key) })
    op.compensate('debit_undone', { call: ({ key }) => bank.move('credit back', key) })
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    op.compensate('note_undone', async (tx) => {
      await tx.query('DELETE FROM effects WHERE note = $1', [`${op.key} noted`])
      await leaveEffect(tx, `${op.key} undone`)
    })
    return await end(op)
  })
}

const NOW = { graceMs: 1, leaseMs: 5_000, inProgressMaxMs: 5_000 }

describe('a saga that cannot go on', () => {
  test.each([
    ['throws', async () => Promise.reject(new Error('the other account is closed'))],
    ['says so', (op: Op) => op.undo(reply(409, { why: 'closed' }))],
  ] as const)('undoes what it did when it %s, and replays its answer', async (how, end) => {
    const bank = makeBank()
    const transfer = transferWith(bank, `saga.${how}`, end)
    const once = shop.open()
    const call = payment()
    const first = await once.run(transfer, call).catch((error: unknown) => error)
    const second = await once.run(transfer, call).catch((error: unknown) => error)
    if (how === 'says so') {
      expect(first).toEqual({ outcome: 'executed', status: 409, value: { why: 'closed' } })
      expect(second).toEqual({ outcome: 'replayed', status: 409, value: { why: 'closed' } })
    } else {
      for (const error of [first, second]) expect(error).toMatchObject({ code: 'handler_failed' })
    }
    expect(bank.done).toEqual(['debit', 'credit back'])
    expect(await shop.countEffects(`${call.key} noted`)).toBe(0)
    expect(await shop.countEffects(`${call.key} undone`)).toBe(1)
  })

  test('undoes nothing while it may still go on: a step that was not executed waits', async () => {
    const bank = makeBank()
    let busy = true
    const transfer = transferWith(bank, 'saga.busy', (op) =>
      op.call('credited', {
        call: async ({ key }) => {
          if (busy) throw notExecuted(new Error('429'))
          return await bank.move('credit', key)
        },
      }),
    )
    const once = shop.open({ reconcileAfterMs: [1, 1] })
    const call = payment()
    // The debit stands: that the credit was not executed is not true of the transfer.
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
    expect(bank.done).toEqual(['debit'])
    busy = false
    await waitUntil('it goes on', async () => (await reconciler(once).runOnce()).done > 0)
    expect(bank.done).toEqual(['debit', 'credit'])
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'replayed', value: 'credit done' })
  })

  test('never goes forward again, and undoes each once, when its process is gone in the middle', async () => {
    const bank = makeBank()
    let ends = 0
    const transfer = transferWith(bank, 'saga.gone', async (op) => {
      ends += 1
      // By the second time it could go on; but what was begun to be undone stays undone.
      if (ends > 1) return await op.call('credited', { call: ({ key }) => bank.move('credit', key) })
      return await op.undo(reply(409, { why: 'closed' }))
    })
    let stuck = true
    bank.pause = async (what) => {
      if (what === 'credit back' && stuck) await new Promise(() => {})
    }
    const call = { ...payment(), ...SHORT }
    // Whether its time is over first, or that of the call, it is not finished.
    const first = await shop
      .open({ reconcileAfterMs: [1, 1, 1] })
      .run(transfer, call)
      .catch(() => null)
    expect(first?.outcome ?? 'gone').toMatch(/gone|unknown/)
    stuck = false
    const once = shop.open({ operations: [transfer], reconcileAfterMs: [1, 1, 1] })
    const again = { ...call, leaseMs: 5_000, inProgressMaxMs: 5_000 }
    await waitUntil('it is finished', async () => {
      await completer(once, NOW).runOnce()
      await reconciler(once).runOnce()
      return (await once.run(transfer, again)).outcome === 'replayed'
    })
    expect(await once.run(transfer, again)).toMatchObject({ status: 409, value: { why: 'closed' } })
    expect(bank.done).toEqual(['debit', 'credit back'])
    expect(await shop.countEffects(`${call.key} undone`)).toBe(1)
  })

  test('undoes nothing around a call that may have been made, and that nobody has asked about', async () => {
    const bank = makeBank()
    let attempts = 0
    const transfer = transferWith(bank, 'saga.unasked', async (op) => {
      attempts += 1
      if (attempts > 1) throw new Error('a setting is missing in this process')
      return await op.call('credited', {
        call: async ({ key }) => {
          await bank.move('credit', key)
          return await new Promise<string>(() => {})
        },
        timeoutMs: 100,
        idempotent: false,
      })
    })
    const call = { ...payment(), leaseMs: 5_000, inProgressMaxMs: 5_000 }
    await shop
      .open()
      .run(transfer, call)
      .catch(() => {})
    const state = `SELECT state FROM onlyonce.records WHERE key = $1`
    await waitUntil(
      'its owner has written that it is in doubt',
      async () => (await shop.observer.query(state, [call.key])).rows[0]?.state === 'unknown',
    )
    // As its owner would have left it, had it been killed within the call.
    await shop.observer.query(
      `UPDATE onlyonce.records SET state = 'in_progress', error_code = NULL, error_message = NULL, look_at = NULL,
         lease_until = clock_timestamp() - interval '1 second' WHERE key = $1`,
      [call.key],
    )
    const once = shop.open({ operations: [transfer], reconcileAfterMs: [1] })
    expect(await completer(once, NOW).runOnce()).toMatchObject({ done: 1 })
    expect(bank.done).toEqual(['debit', 'credit'])
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
  })

  test('an undo in doubt is unknown, one that is refused is parked', async () => {
    const bank = makeBank()
    const transfer = transferWith(bank, 'saga.doubt', (op) => op.undo(reply(409, {})))
    bank.fault = (what) => {
      if (what === 'credit back') throw new Error('socket hang up')
    }
    const once = shop.open({ reconcileAfterMs: [1, 1] })
    const call = payment()
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'unknown' })
    bank.fault = (what) => {
      if (what === 'credit back') throw callRefused(new Error('that account is closed too'))
    }
    await waitUntil('somebody looks', async () => (await reconciler(once).runOnce()).done > 0)
    expect(await once.run(transfer, call)).toMatchObject({ outcome: 'parked' })
    expect(bank.done).toEqual(['debit'])
  })

  test('each undo has a key of its own, the same on every attempt', () => {
    const of = { account: 'acct_1', operation: 'saga', key: 'a-key-of-a-client' }
    const keys = ['debited', 'debit_undone', 'credited'].map((step) => derivedKey({ ...of, step }))
    expect(new Set(keys).size).toBe(3)
  })
})
