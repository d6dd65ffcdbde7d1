import { expect, test } from 'vitest'
import { notExecuted, operation, reply } from '../../src/index.ts'
import { addEvidence, completer, reconciler } from '../../src/workers/index.ts'
import { leaveEffect, makeCall, openShop, type Shop, waitUntil } from '../contract/shop.ts'

const callOf = () => {
  const { account, key } = makeCall()
  return { account, key, input: null }
}

/** What is due is due now: nobody waits for a schedule. */
const hasten = (shop: Shop, key: string) =>
  shop.observer.query('UPDATE onlyonce.records SET look_at = clock_timestamp() WHERE key = $1', [key])

/** As if all that was so far had been so long ago. */
const age = (shop: Shop, key: string, by: string) =>
  shop.observer.query(
    `UPDATE onlyonce.records SET sent_until = sent_until - $2::interval, changed_at = changed_at - $2::interval,
       point_at = point_at - $2::interval, lease_until = lease_until - $2::interval WHERE key = $1`,
    [key, by],
  )

test('what a call brought is kept when the function throws behind it', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  let calls = 0
  let broken = true
  const pay = operation('payments.throws_after_call', async (op, _: unknown) => {
    const id = await op.call('charged', {
      idempotent: false,
      call: async () => {
        calls += 1
        return 'ch_1'
      },
    })
    if (broken) throw new Error('a fault that is mended soon')
    return { id }
  })
  const call = callOf()
  await expect(once.run(pay, call)).rejects.toThrow('mended soon')
  broken = false
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: { id: 'ch_1' } })
  expect(calls).toBe(1)
})

test('what a call brought is kept when the step behind it answers 503', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  let ready = false
  const pay = operation('payments.answers_503', async (op, _: unknown) => {
    const id = await op.call('charged', { idempotent: false, call: async () => 'ch_1' })
    return op.transaction('settled', async () => (ready ? reply(201, { id }) : reply(503, {})))
  })
  const call = callOf()
  await once.run(pay, call)
  ready = true
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', status: 201 })
})

test('a store that fails to tell its evidence proves nothing about a call that was sent', async () => {
  const shop = await openShop()
  let failing = true
  const once = shop.open({
    crashPoint: (point) => {
      if (point === 'operation.evidence.before' && failing) {
        failing = false
        throw new Error('connection lost')
      }
    },
  })
  const pay = operation('payments.evidence_fails', async (op, _: unknown) => {
    await op.call('charged', {
      call: async () => {
        throw new Error('socket hang up')
      },
    })
  })
  const call = callOf()
  await once.run(pay, call).catch(() => {})
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('unknown')
})

test('a worker that cannot ask leaves what is in doubt in doubt', async () => {
  const shop = await openShop()
  let failing = false
  const once = shop.open({
    reconcileAfterMs: [1, 1, 1],
    crashPoint: (point) => {
      if (point === 'operation.evidence.before' && failing) throw new Error('connection lost')
    },
  })
  const pay = operation('payments.worker_cannot_ask', async (op, _: unknown) => {
    await op.call('charged', {
      idempotent: false,
      call: async () => {
        throw new Error('socket hang up')
      },
    })
  })
  const call = callOf()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  failing = true
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('unknown')
})

test('an attempt that throws before it comes to a call that was sent does not make it retryable', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  let broken = false
  const pay = operation('payments.throws_before_call', async (op, _: unknown) => {
    if (broken) throw new Error('no configuration today')
    await op.call('charged', {
      idempotent: false,
      call: async () => {
        throw new Error('socket hang up')
      },
    })
  })
  const call = callOf()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  broken = true
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('unknown')
})

test('not found proves nothing when this very attempt has just sent the call', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1, 1] })
  const charges: string[] = []
  const pay = operation('payments.own_call_settles', async (op, _: unknown) => {
    await op.call('charged', {
      visibleWithinMs: 60_000,
      timeoutMs: 5_000,
      call: async () => {
        charges.push('charge')
        if (charges.length > 4) await pastDeadline()
        throw new Error('socket hang up')
      },
      find: async () => ({ status: 'not_found' }),
    })
  })
  const call = callOf()
  const pastDeadline = () =>
    waitUntil('the deadline is past', async () => {
      const { rows } = await shop.observer.query(
        'SELECT deadline_at < clock_timestamp() AS past FROM onlyonce.records WHERE key = $1',
        [call.key],
      )
      return rows[0].past
    })
  expect(await once.run(pay, { ...call, deadlineMs: 60_000 })).toMatchObject({ outcome: 'unknown' })
  expect(charges).toHaveLength(4)
  // Two minutes later, with a second left until the deadline.
  await age(shop, call.key, '120 seconds')
  await shop.observer.query(
    `UPDATE onlyonce.records SET deadline_at = clock_timestamp() + interval '1 second' WHERE key = $1`,
    [call.key],
  )
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect(charges.length).toBeGreaterThan(4)
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('unknown')
})

test('after the deadline a worker finishes what it finds', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1, 1] })
  let visible = false
  const pay = operation('payments.finishes_late', async (op, _: unknown) => {
    const id = await op.call('charged', {
      call: async () => {
        throw new Error('socket hang up')
      },
      find: async () => (visible ? { status: 'found', result: 'ch_1' } : { status: 'pending' }),
    })
    return op.transaction('settled', async (tx) => {
      await tx.query('SELECT pg_sleep(0.05)')
      await leaveEffect(tx, `${op.key} settled`)
      return reply(201, { id })
    })
  })
  const call = callOf()
  expect(await once.run(pay, { ...call, deadlineMs: 5_000 })).toMatchObject({ outcome: 'unknown' })
  await shop.observer.query('UPDATE onlyonce.records SET deadline_at = clock_timestamp() WHERE key = $1', [
    call.key,
  ])
  visible = true
  await hasten(shop, call.key)
  await reconciler(once).runOnce()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', status: 201 })
})

test('what was proved not executed may be sent by a retry, also where the other side does not dedupe', async () => {
  const shop = await openShop()
  const once = shop.open()
  let refusing = true
  const pay = operation('payments.retry_undeduped', async (op, _: unknown) => {
    const id = await op.call('charged', {
      idempotent: false,
      call: async () => {
        if (refusing) throw notExecuted(new Error('connection refused'))
        return 'ch_1'
      },
    })
    return { id }
  })
  const call = callOf()
  await expect(once.run(pay, call)).rejects.toMatchObject({ code: 'not_executed', executed: 'no' })
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('retryable')
  refusing = false
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: { id: 'ch_1' } })
})

test('a second retry that is proved not executed too is retryable too', async () => {
  const shop = await openShop()
  const once = shop.open()
  const pay = operation('payments.refused_twice', async (op, _: unknown) => {
    await op.call('charged', {
      call: async () => {
        throw notExecuted(new Error('connection refused'))
      },
    })
  })
  const call = callOf()
  await expect(once.run(pay, call)).rejects.toMatchObject({ code: 'not_executed', executed: 'no' })
  await expect(once.run(pay, call)).rejects.toMatchObject({ code: 'not_executed', executed: 'no' })
  expect((await once.explain({ ...call, operation: pay.name })).state).toBe('retryable')
})

test('a worker with a shorter lease than the call needs does not undo what was sent', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1, 1] })
  const done: string[] = []
  const pay = operation('payments.short_lease', async (op, _: unknown) => {
    await op.call('debited', { call: async () => done.push('debit') })
    op.compensate('debit_undone', { call: async () => done.push('undo debit') })
    await op.call('credited', {
      timeoutMs: 5_000,
      call: async () => {
        done.push('credit')
        throw new Error('socket hang up')
      },
      find: async () => ({ status: 'pending' }),
    })
  })
  const call = callOf()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  await hasten(shop, call.key)
  await reconciler(once, { leaseMs: 3_000 }).runOnce()
  expect(done).toEqual(['debit', 'credit'])
})

test('looks at one call are not counted against the next', async () => {
  const shop = await openShop()
  const once = shop.open({ reconcileAfterMs: [1, 1] })
  const found = new Set<string>()
  const unanswered = (name: string) => ({
    idempotent: false,
    call: async (): Promise<string> => {
      throw new Error('socket hang up')
    },
    find: async () =>
      found.has(name) ? ({ status: 'found', result: name } as const) : ({ status: 'not_found' } as const),
  })
  const pay = operation('payments.looks', async (op, _: unknown) => {
    await op.call('first', unanswered('first'))
    await op.call('second', unanswered('second'))
  })
  const call = callOf()
  const look = async () => {
    await hasten(shop, call.key)
    await reconciler(once).runOnce()
    return (await once.explain({ ...call, operation: pay.name })).state
  }
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'unknown' })
  expect(await look()).toBe('unknown')
  found.add('first')
  expect(await look()).toBe('unknown')
  found.add('second')
  expect(await look()).toBe('completed')
})

test('with encryption the first caller is given what a replay gives', async () => {
  const shop = await openShop()
  const once = shop.open({ encryption: 'an-encryption-key-for-these-tests-012345' })
  const pay = operation('payments.sealed', async (op, _: unknown) => {
    await op.transaction('noted', async () => ({ id: 'p_1' }))
    return op.transaction('settled', async () => reply(201, { id: 'p_1' }))
  })
  const call = callOf()
  expect(await once.run(pay, call)).toEqual({ outcome: 'executed', status: 201, value: { id: 'p_1' } })
  expect(await once.run(pay, call)).toEqual({ outcome: 'replayed', status: 201, value: { id: 'p_1' } })
})

test('evidence that comes before the doubt settles it', async () => {
  const shop = await openShop()
  const once = shop.open({ encryption: 'an-encryption-key-for-these-tests-012345' })
  let sent = ''
  const pay = operation('payments.evidence', async (op, _: unknown) => {
    const id = await op.call('charged', {
      idempotent: false,
      call: async ({ key }): Promise<string> => {
        sent = key
        await addEvidence(once, { account: op.account, key, result: 'ch_7' })
        throw new Error('socket hang up')
      },
    })
    return { id }
  })
  const call = callOf()
  expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: { id: 'ch_7' } })
  expect(sent).not.toBe('')
})

test('a branch that was taken because a step failed is not forgotten with the call made in it', async () => {
  const shop = await openShop()
  const sent: string[] = []
  let stock = 0
  const order = operation('payments.branch', async (op, _: unknown) => {
    let from = 'stock'
    try {
      await op.transaction('reserved', async () => {
        if (stock === 0) throw new Error('nothing in stock')
        return 1
      })
    } catch {
      from = 'supplier'
    }
    await op.call(`ordered_from_${from}`, {
      call: async () => {
        sent.push(from)
        // The first owner is gone before it is answered.
        if (sent.length === 1) await new Promise(() => {})
        return from
      },
    })
  })
  const call = callOf()
  const refused = shop
    .open()
    .run(order, call)
    .then(
      () => false,
      ({ code }) => code === 'option_invalid',
    )
  if (await Promise.race([refused, waitUntil('it is sent', async () => sent.length === 1)])) return
  await age(shop, call.key, '1 hour')
  stock = 5
  await completer(shop.open({ operations: [order] }), { graceMs: 1 }).runOnce()
  expect(new Set(sent).size).toBe(1)
})
