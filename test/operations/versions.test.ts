import { beforeAll, describe, expect, test } from 'vitest'
import { derivedKey } from '../../src/entries/keys.ts'
import { type Op, operation, reply } from '../../src/index.ts'
import { completer } from '../../src/workers/index.ts'
import { catchError, leaveEffect, openShop, SECRET, type Shop, waitUntil } from '../contract/shop.ts'
import { makeRecorder } from '../setup/recorder.ts'
import { abandonAt, makeTill, payment, payWith, SHORT } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const NOW = { graceMs: 1, leaseMs: 5_000, inProgressMaxMs: 5_000 }

/** Leaves an operation whose first two steps are durable, and whose owner is gone. */
async function abandon(name: string) {
  const call = { ...payment(), ...SHORT }
  const first = operation(name, async (op: Op, _: { amount: number }) => {
    await op.transaction('one', (tx) => leaveEffect(tx, `${op.key} one`))
    await op.transaction('two', (tx) => leaveEffect(tx, `${op.key} two`))
    await new Promise(() => {})
    return reply(201, {})
  })
  await catchError(shop.open().run(first, call))
  return { call, again: { ...call, leaseMs: 5_000, inProgressMaxMs: 5_000 } }
}

type Body = (op: Op) => Promise<unknown>
const note = (op: Op, name: string) => op.transaction(name, (tx) => leaveEffect(tx, `${op.key} ${name}`))

const CHANGED: Readonly<Record<string, Body>> = {
  'a step renamed': async (op) => {
    await note(op, 'one')
    await note(op, 'zwei')
  },
  'a step missing': async (op) => {
    await note(op, 'one')
    await note(op, 'three')
  },
  'the order changed': async (op) => {
    await note(op, 'two')
    await note(op, 'one')
  },
  'a step of another kind': async (op) => {
    await op.call('one', { call: async () => 1 })
    await note(op, 'two')
    await note(op, 'three')
  },
  'an end before the durable steps': async (op) => {
    await note(op, 'one')
  },
  'an undo before the durable steps': async (op) => {
    await note(op, 'one')
    return await op.undo(reply(409, {}))
  },
  'a function that swallows what it is told': async (op) => {
    await note(op, 'zwei').catch(() => {})
    await note(op, 'drei').catch(() => {})
    return reply(201, { all: 'well' })
  },
}

describe('code that changed without a version', () => {
  test.each(Object.entries(CHANGED))('%s is noticed, and parked', async (what, body) => {
    const name = `changed.${Object.keys(CHANGED).indexOf(what)}`
    const { again } = await abandon(name)
    const changed = operation(name, (op, _: { amount: number }) => body(op))
    const once = shop.open()
    await waitUntil(
      'the lease is over',
      async () => (await once.run(changed, again)).outcome !== 'in_progress',
    )
    expect(await once.run(changed, again)).toMatchObject({
      outcome: 'parked',
      why: expect.stringMatching(/durable/),
    })
    for (const step of ['zwei', 'drei', 'three']) {
      expect(await shop.countEffects(`${again.key} ${step}`)).toBe(0)
    }
    const { rows } = await shop.observer.query('SELECT error_code FROM onlyonce.records WHERE key = $1', [
      again.key,
    ])
    expect(rows[0].error_code).toBe('operation_changed')
  })
})

describe('versions', () => {
  test('live side by side: each record is finished by the code that began it', async () => {
    const till = makeTill()
    const first = payWith(till, { name: 'payments.versions', between: abandonAt('created') })
    const second = operation('payments.versions@2', async (op, _: { amount: number }) =>
      reply(201, { id: op.key, charge: 'by the second' }),
    )
    const call = { ...payment(), ...SHORT }
    await catchError(shop.open().run(first, call))
    const again = { ...call, leaseMs: 5_000, inProgressMaxMs: 5_000 }
    const once = shop.open({ operations: [first] })
    expect(await once.run(second, payment())).toMatchObject({ value: { charge: 'by the second' } })
    expect(await once.run(second, again)).toMatchObject({ outcome: 'executed', value: { charge: 'ch_1' } })
    expect(till.charges).toMatchObject([
      { key: derivedKey({ ...call, operation: 'payments.versions', step: 'charged' }) },
    ])
  })

  test('a process that lacks the version says so, and lets others go on', async () => {
    const till = makeTill()
    const first = payWith(till, { name: 'payments.gone', between: abandonAt('created') })
    const second = payWith(till, { name: 'payments.gone@2' })
    const call = { ...payment(), ...SHORT }
    await catchError(shop.open().run(first, call))
    const again = { ...call, leaseMs: 5_000, inProgressMaxMs: 5_000 }
    const heard = makeRecorder()
    const once = shop.open({ observe: heard })
    const error = await waitForError(() => once.run(second, again))
    expect(error).toMatchObject({ code: 'operation_unknown', retryable: true })
    // A mistake of the deployment, and none of the store.
    expect(heard.of('store_error')).toEqual([])
    const route = 'once.run() of payments.gone'
    expect(heard.of('mistake')).toMatchObject([{ route, code: 'operation_unknown', first: true }])
    expect(till.calls).toBe(0)
    const knowing = shop.open({ operations: [first] })
    await waitUntil('it is finished', async () => (await completer(knowing, NOW).runOnce()).done > 0)
    expect(await once.run(second, again)).toMatchObject({ outcome: 'replayed' })
  })

  test('a retry after a crash, a new version and other secrets makes the same call', async () => {
    const own = await openShop()
    const till = makeTill({ lookup: 'away' })
    const first = payWith(till, { name: 'payments.rotated', between: abandonAt('charged') })
    const call = { ...payment(), ...SHORT }
    await catchError(own.open({ encryption: SECRET }).run(first, call))
    const ring = { current: 'b', keys: { default: SECRET, b: 'another-secret-of-more-than-32-bytes!' } }
    const once = own.open({ secret: ring, encryption: ring, operations: [first] })
    const second = operation('payments.rotated@2', async (_, __: { amount: number }) => reply(500, {}))
    const again = { ...call, leaseMs: 5_000, inProgressMaxMs: 5_000 }
    await waitUntil(
      'the lease is over',
      async () => (await once.run(second, again)).outcome !== 'in_progress',
    )
    expect(await once.run(second, again)).toMatchObject({ outcome: 'replayed', status: 201 })
    expect(till).toMatchObject({ calls: 2, charges: [{ id: 'ch_1' }] })
  })

  test('two functions under one name and version are refused', async () => {
    const till = makeTill()
    const twice = [payWith(till, { name: 'payments.twice' }), payWith(till, { name: 'payments.twice' })]
    expect(() => shop.open({ operations: twice })).toThrow(/two operations payments.twice of version 1/)
  })
})

async function waitForError(run: () => Promise<unknown>): Promise<unknown> {
  let error: unknown
  await waitUntil('it throws', async () => {
    error = await run().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    return error !== undefined
  })
  return error
}

describe('the version in a name', () => {
  test.each(['payments.create@v2', 'payments.create@2.1', 'payments.create@', 'payments@2.create'])(
    'is a whole number: %s is refused, because scopes would take it for another name',
    (name) => {
      expect(() => operation(name, async () => 1)).toThrow(/a version, which is a whole number/)
    },
  )

  test('is found by whoever asks about the key with it, without it, or with another', async () => {
    const second = operation('payments.asked@2', async () => reply(201, {}))
    expect(second).toMatchObject({ name: 'payments.asked', version: '2' })
    const once = shop.open()
    const { account, key } = payment()
    await once.run(second, { account, key, input: null })
    for (const name of ['payments.asked', 'payments.asked@2', 'payments.asked@17']) {
      expect(await once.explain({ account, operation: name, key })).toMatchObject({ state: 'completed' })
    }
  })
})
