import { expect, test } from 'vitest'
import { callRefused, notExecuted, type Op, operation, reply } from '../../src/index.ts'
import { reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, openShop } from '../contract/shop.ts'

const callOf = () => {
  const { account, key } = makeCall()
  return { account, key, input: null }
}

test('an undo may be called undo, and is done', async () => {
  const shop = await openShop()
  const once = shop.open()
  const done: string[] = []
  const transfer = operation('payments.undo_named_undo', async (op, _: unknown) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('undo', { call: async () => done.push('undo debit') })
    return op.undo(reply(410, {}))
  })
  expect(await once.run(transfer, callOf())).toMatchObject({ outcome: 'executed', status: 410 })
  expect(done).toEqual(['debit', 'undo debit'])
})

test('of two undos with one name none is forgotten: the operation does not end as undone', async () => {
  const shop = await openShop()
  const once = shop.open()
  const undone: number[] = []
  const transfer = operation('payments.undo_twice_named', async (op, _: unknown) => {
    for (const leg of [1, 2]) {
      await op.call(`debited_${leg}`, { call: async () => leg })
      op.compensate('debit_undone', { call: async () => undone.push(leg) })
    }
    return op.undo(reply(410, {}))
  })
  const ended = await once.run(transfer, callOf()).then(
    ({ outcome }) => outcome,
    ({ code }) => code,
  )
  if (ended === 'executed') expect(undone).toEqual([2, 1])
  else expect(ended).toBe('option_invalid')
})

test('the undo of a call never carries the key of that call', async () => {
  const shop = await openShop()
  const once = shop.open()
  const keys: string[] = []
  const call = async ({ key }: { key: string }) => keys.push(key)
  const transfer = operation('payments.undo_key', async (op, _: unknown) => {
    await op.call('debit', { call })
    op.compensate('debit', { call })
    return op.undo(reply(410, {}))
  })
  await once.run(transfer, callOf()).catch(() => {})
  expect(new Set(keys).size).toBe(keys.length)
})

test('an undo that is not awaited is not done twice', async () => {
  const shop = await openShop()
  const once = shop.open()
  const undone: string[] = []
  const transfer = operation('payments.undo_unawaited', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    op.compensate('note_undone', {
      idempotent: false,
      call: async () => {
        undone.push('undone')
        await new Promise((resolve) => setTimeout(resolve, 200))
      },
    })
    op.undo(reply(410, {})).catch(() => {})
    return reply(410, {})
  })
  await once.run(transfer, callOf()).catch(() => {})
  await once.close()
  expect(undone.length).toBeLessThanOrEqual(1)
})

test('an undo whose call was not executed is not left to a client that never comes back', async () => {
  const shop = await openShop()
  let refusing = true
  const done: string[] = []
  const transfer = operation('payments.undo_refused', async (op, _: unknown) => {
    await op.transaction('reserved', (tx) => leaveEffect(tx, `${op.key} reserved`))
    op.compensate('released', {
      call: async () => {
        if (refusing) throw notExecuted(new Error('busy'))
        return done.push('released')
      },
    })
    return op.undo(reply(410, {}))
  })
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  const call = callOf()
  await once.run(transfer, call).catch(() => {})
  // What is half undone is not "nothing happened".
  expect((await once.explain({ ...call, operation: transfer.name })).state).toBe('unknown')
  refusing = false
  await reconciler(once).runOnce()
  expect(done).toEqual(['released'])
})

test('a call whose result cannot be kept is not undone around: what was done stays known', async () => {
  const shop = await openShop()
  const once = shop.open()
  const done: string[] = []
  const transfer = operation('payments.unkept_result', async (op, _: unknown) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', { call: async () => done.push('undo debit') })
    await op.call('credited', {
      call: async () => {
        done.push('credit')
        return { amount: 5n }
      },
    })
    op.compensate('credit_undone', { call: async () => done.push('undo credit') })
    return reply(201, {})
  })
  const call = callOf()
  await once.run(transfer, call).catch(() => {})
  // The credit stands, so the debit must.
  expect(done).toEqual(['debit', 'credit'])
  expect((await once.explain({ ...call, operation: transfer.name })).state).toBe('unknown')
})

test('a call whose result cannot be kept does not leave the record retryable', async () => {
  const shop = await openShop()
  const once = shop.open()
  const pay = operation('payments.unkept_alone', async (op, _: unknown) => {
    await op.call('charged', { call: async () => ({ text: 'x'.repeat(70_000) }) })
    return reply(201, {})
  })
  const call = callOf()
  await once.run(pay, call).catch(() => {})
  expect((await once.explain({ ...call, operation: pay.name })).state).not.toBe('retryable')
})

test('steps of what goes on behind the end of the function send nothing any more', async () => {
  const shop = await openShop()
  const once = shop.open()
  let go = () => {}
  const waiting = new Promise<void>((resolve) => {
    go = resolve
  })
  let late: Promise<unknown> | undefined
  const sent: string[] = []
  const goOn = async (op: Op) => {
    await waiting
    await op.call('charged', { call: async () => sent.push('charge') })
  }
  const pay = operation('payments.after_the_end', async (op, _: unknown) => {
    await op.transaction('noted', (tx) => leaveEffect(tx, `${op.key} noted`))
    late = goOn(op).catch(() => {})
    throw new Error('the other half failed')
  })
  const call = callOf()
  await expect(once.run(pay, call)).rejects.toThrow('the other half failed')
  go()
  await late
  expect(sent).toEqual([])
})

test('a step that overlaps a call in flight does not leave the record retryable', async () => {
  const shop = await openShop()
  const once = shop.open()
  let go = () => {}
  const waiting = new Promise<void>((resolve) => {
    go = resolve
  })
  const pay = operation('payments.overlap', async (op, _: unknown) => {
    let sent = () => {}
    const inFlight = new Promise<void>((resolve) => {
      sent = resolve
    })
    const slow = op.call('first', {
      call: () => {
        sent()
        return waiting.then(() => 'done')
      },
    })
    slow.catch(() => {})
    const late = inFlight.then(() => Promise.reject(new Error('too slow')))
    return Promise.race([slow, late]).catch(() => op.call('second', { call: async () => 'other' }))
  })
  const call = callOf()
  await once.run(pay, call).catch(() => {})
  const { state } = await once.explain({ ...call, operation: pay.name })
  go()
  expect(state).not.toBe('retryable')
})

test('a call that was refused for good while undoing is parked', async () => {
  const shop = await openShop()
  const once = shop.open()
  const transfer = operation('payments.undo_for_good', async (op, _: unknown) => {
    await op.call('debited', { call: async () => 1 })
    op.compensate('debit_undone', {
      call: async () => {
        throw callRefused(new Error('never'))
      },
    })
    throw new Error('cannot go on')
  })
  expect(await once.run(transfer, callOf())).toMatchObject({ outcome: 'parked' })
})
