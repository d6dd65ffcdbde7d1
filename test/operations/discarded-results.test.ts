import { beforeAll, describe, expect, test } from 'vitest'
import { type CallStep, type Op, operation, reply } from '../../src/index.ts'
import { derivedKey } from '../../src/key/index.ts'
import { type Discarding, operator } from '../../src/operator/index.ts'
import { addEvidence, reconciler } from '../../src/workers/index.ts'
import {
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openShop,
  type Shop,
  waitUntil,
} from '../contract/shop.ts'
import { LOOKS, lookUntilParked, rowOf, SIGNED } from './remembered.ts'
import { payment } from './till.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

const WRONG = { id: 'ch_of_another_order' }
const RIGHT = { id: 'ch_right' }
const DISCARD: Discarding = { ...SIGNED, step: 'charged' }
const ENCRYPTION = 'the-encryption-key-of-discarded-results-0123'

type Charge = { readonly id: string }

/** A processor whose answer is lost, and whose lookup finds the charge of another order. */
interface World {
  readonly found: Charge[]
  readonly asked: string[]
  readonly sent: string[]
  find: Charge | null
  settles: boolean
  /** Resolves where the first owner does not come back. */
  vanished?: Promise<void>
  body?: (op: Op, charged: Charge) => Promise<unknown>
}

const worldOf = (changes: Partial<World> = {}): World => ({
  found: [],
  asked: [],
  sent: [],
  find: WRONG,
  settles: false,
  ...changes,
})

let names = 0

/** A payment whose call has a wrong result, which is durable; the step behind it fails. */
async function wrongPayment(
  world: World,
  options: { encryption?: string; at?: Shop; step?: Partial<CallStep<Charge>> } = {},
) {
  names += 1
  const name = `payments.discarded_${names}`
  const pay = operation(name, async (op: Op) => {
    await op.transaction('created', (tx) => leaveEffect(tx, op.key))
    const charged = await op.call<Charge>('charged', {
      call: async ({ key }) => {
        world.sent.push(key)
        throw new Error('socket hang up')
      },
      find: async ({ key }) => {
        world.asked.push(key)
        return world.find === null ? { status: 'not_found' } : { status: 'found', result: world.find }
      },
      ...options.step,
    })
    world.found.push(charged)
    if (world.body !== undefined) return await world.body(op, charged)
    return await op.transaction('settled', async (tx) => {
      if (!world.settles) throw new Error('the charge has another amount')
      await leaveEffect(tx, `${op.key} ${charged.id}`)
      return reply(201, charged)
    })
  })
  const { encryption, at = shop } = options
  const once = at.open({ ...LOOKS, operations: [pay], ...(encryption && { encryption }) })
  const call = payment()
  const id = { account: call.account, operation: name, key: call.key }
  const keyOf = (step: string, generation = 0) => derivedKey({ ...id, step, generation })
  const ran = once.run(pay, call).catch(() => {})
  await (world.vanished === undefined ? ran : Promise.race([ran, world.vanished]))
  const look = () =>
    waitUntil('it is looked at', async () => {
      await reconciler(once).runOnce()
      const { state } = await once.explain(id)
      return state !== 'unknown' && state !== 'in_progress'
    })
  return { once, desk: operator(once), pay, call, id, keyOf, look }
}

type Wrong = Awaited<ReturnType<typeof wrongPayment>>

async function parked(world: World, options?: Parameters<typeof wrongPayment>[1]): Promise<Wrong> {
  const wrong = await wrongPayment(world, options)
  await lookUntilParked(wrong)
  return wrong
}

describe('a wrong result that is discarded', () => {
  test('leaves the call in doubt: the right one is told, and the operation goes on with it', async () => {
    const world = worldOf()
    const { once, desk, call, pay, id, keyOf, look } = await parked(world)
    expect((await desk.show(id, { results: true })).results?.steps.at(-1)).toMatchObject({ result: WRONG })
    const { fence } = (await desk.show(id)).record!
    expect(await desk.discardResult(id, { ...DISCARD, fence })).toEqual({
      step: 'charged',
      key: keyOf('charged'),
    })
    const { state, inDoubt, record, why } = await desk.show(id)
    expect({ state, step: inDoubt?.step, key: inDoubt?.key, recoveryPoint: record?.recoveryPoint }).toEqual({
      state: 'parked',
      step: 'charged',
      key: keyOf('charged'),
      recoveryPoint: 'created',
    })
    expect(why).toContain('result_discarded')
    // No retry runs, and no look is made, before the operator goes on.
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'parked' })
    await addEvidence(once, { account: id.account, key: keyOf('charged'), result: RIGHT, ...SIGNED })
    world.settles = true
    await desk.unpark(id, SIGNED)
    await look()
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'replayed', value: RIGHT })
    expect(world.found.at(-1)).toEqual(RIGHT)
    expect([await shop.countEffects(call.key), await shop.countEffects(`${call.key} ${RIGHT.id}`)]).toEqual([
      1, 1,
    ])
    expect(world.sent).toEqual([keyOf('charged')])
  })

  test('is asked for again where nothing was told', async () => {
    const world = worldOf()
    const { desk, id, look } = await parked(world)
    await desk.discardResult(id, DISCARD)
    Object.assign(world, { find: RIGHT, settles: true })
    await desk.unpark(id, SIGNED)
    await look()
    expect(await shop.countEffects(`${id.key} ${RIGHT.id}`)).toBe(1)
  })

  test('takes the evidence with it that brought it', async () => {
    const world = worldOf({ find: null })
    const wrong = await wrongPayment(world)
    const { once, desk, id, keyOf, look } = wrong
    const key = keyOf('charged')
    const tell = (result: Charge) => addEvidence(once, { account: id.account, key, result })
    expect((await tell(WRONG)).why).toBe('record_waits')
    await lookUntilParked(wrong)
    expect((await tell(RIGHT)).why).toBe('earlier_evidence_stands')
    await desk.discardResult(id, DISCARD)
    expect((await desk.show(id, { results: true })).results?.evidence).toEqual([])
    expect((await tell(RIGHT)).why).toBe('record_waits')
    world.settles = true
    await desk.unpark(id, SIGNED)
    await look()
    expect(await shop.countEffects(`${id.key} ${RIGHT.id}`)).toBe(1)
  })

  test('is in the audit with its signature, sealed, and is shown on request', async () => {
    const world = worldOf()
    // A start without the key is refused while a record needs it: a database of its own.
    const at = await openShop()
    const { desk, id, keyOf } = await parked(world, { encryption: ENCRYPTION, at })
    const { fence } = (await desk.show(id)).record!
    await desk.discardResult(id, DISCARD)
    const told = {
      ...SIGNED,
      action: 'discard_result',
      from: 'parked',
      to: 'parked',
      fence,
      callKey: keyOf('charged'),
    }
    const { audit, results } = await desk.show(id, { results: true })
    expect(audit).toMatchObject([{ ...told, seq: 1 }])
    expect(results?.discarded).toEqual([
      { seq: 1, key: keyOf('charged'), step: 'charged', result: WRONG, readable: true },
    ])
    const { rows } = await at.observer.query(
      `SELECT encode(a.discarded, 'escape') || encode(r.progress, 'escape') AS text, a.discarded_key_id AS key_id
       FROM onlyonce.audit AS a JOIN onlyonce.records AS r USING (account, operation, key) WHERE key = $1`,
      [id.key],
    )
    expect(rows[0].key_id).toBe((await rowOf(at, id.key)).progress_key_id)
    expect(rows[0].text).not.toContain(WRONG.id)
    expect(rows[0].text).not.toContain('charged')
    const other = operator(at.open())
    expect((await catchError(other.show(id, { results: true }))).code).toBe('seal_key_unknown')
    await desk.resolve(id, { ...SIGNED, reply: { status: 200, body: '1' } })
    // Of what is finished nothing else is sealed that would be opened; the audit outlives the key.
    expect((await other.show(id, { results: true })).results?.discarded).toEqual([
      { seq: 1, key: keyOf('charged'), step: null, result: undefined, readable: false },
    ])
  })

  test('is a call in doubt like any other: it can be void', async () => {
    const world = worldOf()
    const { once, desk, pay, call, id, keyOf } = await parked(world, {
      step: {
        call: async ({ key }) => {
          world.sent.push(key)
          if (world.sent.length === 1) throw new Error('socket hang up')
          return RIGHT
        },
      },
    })
    await desk.discardResult(id, DISCARD)
    Object.assign(world, { find: null, settles: true })
    await desk.resolve(id, { ...SIGNED, allowRetry: true, earlierCallIsVoid: true })
    expect(await once.run(pay, call)).toMatchObject({ outcome: 'executed', value: RIGHT })
    expect(world.sent).toEqual([keyOf('charged'), keyOf('charged', 1)])
  })

  test('does not make the other side remember the key for longer', async () => {
    const world = worldOf()
    const { desk, id, keyOf, look } = await parked(world, { step: { keyLifetimeMs: 3_600_000 } })
    await shop.observer.query(
      `UPDATE onlyonce.records SET created_at = created_at - interval '1 day' WHERE key = $1`,
      [id.key],
    )
    await desk.discardResult(id, DISCARD)
    world.find = null
    await desk.unpark(id, SIGNED)
    await look()
    expect((await desk.show(id)).record?.failure?.code).toBe('call_key_forgotten')
    expect(world.sent).toEqual([keyOf('charged')])
  })

  test('lets no client hear that nothing was executed', async () => {
    const world = worldOf()
    const { once, desk, pay, call, id } = await parked(world)
    await desk.discardResult(id, DISCARD)
    await desk.resolve(id, { ...SIGNED, allowRetry: true })
    expect(await rowOf(shop, id.key)).toMatchObject({ effects_possible: true })
    world.find = null
    expect(await catchError(once.run(pay, { ...call, deadlineMs: 1 }))).not.toMatchObject({
      code: 'not_executed',
    })
  })
})

test('the result of a call that undoes another is discarded alike', async () => {
  let refund = WRONG
  const world = worldOf({
    body: async (op) => {
      op.compensate('noted', async () => {
        if (!world.settles) throw new Error('the refund is of another order')
      })
      op.compensate('refunded', {
        call: () => Promise.reject(new Error('socket hang up')),
        find: async () => ({ status: 'found' as const, result: refund }),
      })
      throw new Error('it cannot be settled')
    },
  })
  const { once, desk, id, look } = await parked(world)
  expect(await catchError(desk.discardResult(id, DISCARD))).toMatchObject({ code: 'not_resolvable' })
  await desk.discardResult(id, { ...DISCARD, step: 'refunded' })
  refund = RIGHT
  await desk.unpark(id, SIGNED)
  await lookUntilParked({ once, id })
  expect((await desk.show(id, { results: true })).results?.steps.at(-1)).toMatchObject({
    name: 'refunded',
    result: RIGHT,
  })
  world.settles = true
  await desk.unpark(id, SIGNED)
  await look()
  expect((await desk.show(id)).state).toBe('completed')
})

test('a call that may follow a discarded result is asked about first: an owner that vanished may have made it', async () => {
  const captures: string[] = []
  const vanished = makeGate()
  const world = worldOf({
    vanished: vanished.reached,
    body: async (op, charged) => {
      const captured = await op.call('captured', {
        call: async () => {
          captures.push(charged.id)
          await vanished.pass()
          return charged.id
        },
        find: async () => {
          const [result] = captures
          return result === undefined ? { status: 'not_found' } : { status: 'found', result }
        },
      })
      return reply(201, { captured })
    },
  })
  const { desk, id, look } = await wrongPayment(world)
  expect(captures).toEqual([WRONG.id])
  const owned = await catchError(desk.discardResult(id, DISCARD))
  expect(owned).toMatchObject({ code: 'not_resolvable', message: expect.stringContaining('its lease') })
  await shop.observer.query(
    `UPDATE onlyonce.records SET lease_until = clock_timestamp() - interval '1 second' WHERE key = $1`,
    [id.key],
  )
  await desk.discardResult(id, DISCARD)
  expect(await rowOf(shop, id.key)).toMatchObject({ state: 'parked', recovery_point: 'created' })
  world.find = RIGHT
  await desk.unpark(id, SIGNED)
  await look()
  // One capture, of the wrong charge: the record says so, and none was made in silence beside it.
  expect(captures).toEqual([WRONG.id])
  expect(world.found).toEqual([WRONG, RIGHT])
  expect((await desk.show(id, { reply: true })).reply?.body?.toString()).toContain(WRONG.id)
  vanished.open()
})

describe('is refused', () => {
  const refuse = async ({ desk, id }: Wrong, discarding: Partial<Discarding> = {}) => {
    const before = await rowOf(shop, id.key)
    const error = await catchError(desk.discardResult(id, { ...DISCARD, ...discarding }))
    expect(await rowOf(shop, id.key)).toEqual(before)
    expect((await desk.show(id)).audit).toEqual([])
    return error
  }

  test('where another step is the last durable one', async () => {
    const wrong = await parked(worldOf())
    expect(await refuse(wrong, { step: 'created' })).toMatchObject({
      code: 'not_resolvable',
      message: expect.stringContaining('The last durable step is charged, a call.'),
    })
  })

  test('where the last durable step is a transaction', async () => {
    const world = worldOf({
      body: async (op) => {
        await op.transaction('noted', async () => 1)
        throw new Error('the mail server is away')
      },
    })
    const wrong = await parked(world)
    expect(await refuse(wrong)).toMatchObject({ code: 'not_resolvable' })
    expect(await refuse(wrong, { step: 'noted' })).toMatchObject({
      message: expect.stringContaining('Only the result of a call'),
    })
  })

  test('where a call that follows is in doubt', async () => {
    const world = worldOf({
      body: (op) =>
        op.call('captured', {
          call: () => Promise.reject(new Error('socket hang up')),
          find: async () => ({ status: 'pending' }),
        }),
    })
    const wrong = await parked(world)
    expect(await refuse(wrong)).toMatchObject({
      code: 'not_resolvable',
      message: expect.stringContaining('The call of step captured follows it, and is in doubt'),
    })
  })

  test('where it has begun to be undone', async () => {
    const world = worldOf({
      body: async (op) => {
        op.compensate('refunded', {
          call: () => Promise.reject(new Error('away')),
          find: async () => ({ status: 'pending' as const }),
        })
        throw new Error('it cannot be settled')
      },
    })
    expect(await refuse(await parked(world))).toMatchObject({ code: 'not_resolvable' })
  })

  test('for a fence that is not the present one, and by the second of two', async () => {
    const wrong = await parked(worldOf())
    const { fence } = (await wrong.desk.show(wrong.id)).record!
    expect(await refuse(wrong, { fence: fence - 1 })).toMatchObject({ code: 'record_changed' })
    const ends = await Promise.allSettled([
      wrong.desk.discardResult(wrong.id, DISCARD),
      wrong.desk.discardResult(wrong.id, DISCARD),
    ])
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await wrong.desk.show(wrong.id)).audit).toHaveLength(1)
  })

  test('for what is completed, or is no operation', async () => {
    const world = worldOf({ settles: true })
    const { once, desk, id } = await wrongPayment(world)
    await waitUntil('it is completed', async () => {
      await reconciler(once).runOnce()
      return (await once.explain(id)).state === 'completed'
    })
    expect(await catchError(desk.discardResult(id, DISCARD))).toMatchObject({ code: 'not_resolvable' })
    const call = makeCall()
    await catchError(once.transaction(call, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
    expect(await catchError(desk.discardResult(call, DISCARD))).toMatchObject({
      code: 'not_resolvable',
      message: expect.stringContaining('no operation'),
    })
    expect(await catchError(desk.discardResult(call, SIGNED as never))).toMatchObject({
      code: 'option_invalid',
    })
  })
})
