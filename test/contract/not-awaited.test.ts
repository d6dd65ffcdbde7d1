/** Calls on a transaction that its function does not await. */
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Onlyonce, Queryable } from '../../src/index.ts'
import { assertFence, locks } from '../../src/locks/index.ts'
import { operator } from '../../src/operator/index.ts'
import { inbox, outbox } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { receiveWebhook } from '../../src/webhooks/index.ts'
import {
  beginCaller,
  catchError,
  leaveEffect,
  makeCall,
  makeGate,
  openShop,
  type Shop,
  settleWithin,
} from './shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const account = 'acct_1'
type Tx = Queryable & Pick<pg.PoolClient, 'query'>
const countOf = async (table: string, column: string, note: string): Promise<number> => {
  const { rows } = await shop.observer.query(
    `SELECT count(*)::int AS count FROM onlyonce.${table} WHERE ${column} = $1`,
    [note],
  )
  return rows[0].count
}

/** What each call leaves: the call, and how many rows tell that it was done wholly. */
const CALLS: Readonly<
  Record<string, [(tx: Tx, note: string) => Promise<unknown>, (note: string) => Promise<number>]>
> = {
  'inbox.once': [
    (tx, note) =>
      inbox(once).once(tx, { account, source: 's', messageId: note }, async () => {
        await new Promise(setImmediate)
        await leaveEffect(tx, note)
        await tx.query('SELECT 1')
      }),
    (note) => shop.countEffects(note),
  ],
  receiveWebhook: [
    (tx, note) =>
      receiveWebhook(once, { account, source: 's', id: note, job: note, payload: Buffer.from('{}'), tx }),
    (note) => countOf('jobs', 'job', note),
  ],
  'once.within': [
    (tx, note) =>
      once.within(tx, makeCall({ key: note, operation: 'inner' }), async (inner) => {
        await new Promise(setImmediate)
        await leaveEffect(inner, note)
      }),
    (note) => shop.countEffects(note),
  ],
  emit: [
    (tx, note) => outbox(once).emit(tx, { account, type: note }),
    (note) => countOf('events', 'type', note),
  ],
  stage: [
    (tx, note) => outbox(once).stage(tx, { account, job: note }),
    (note) => countOf('jobs', 'job', note),
  ],
}

describe.each(Object.entries(CALLS))('%s that is not awaited', (_, [call, count]) => {
  test.each(['first', 'after a statement'])('is committed with once.transaction: %s', async (when) => {
    const request = makeCall()
    let calling: Promise<unknown> | undefined
    const result = await once.transaction(request, async (tx) => {
      if (when !== 'first') await tx.query('SELECT 1')
      calling = call(tx as unknown as Tx, request.key)
      return 1
    })
    expect(result).toEqual({ outcome: 'executed', value: 1 })
    await calling
    expect(await count(request.key)).toBe(1)
  })

  test('is committed with the transaction that once.within has joined', async () => {
    const request = makeCall()
    const client = await beginCaller(shop)
    let calling: Promise<unknown> | undefined
    await once.within(client, makeCall(), async (tx) => {
      calling = call(tx as Tx, request.key)
      return 1
    })
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    await calling
    expect(await count(request.key)).toBe(1)
  })

  test('is undone with the function that throws', async () => {
    const request = makeCall()
    const client = await beginCaller(shop)
    const failing = once.within(client, makeCall(), async (tx) => {
      call(tx as Tx, request.key).catch(() => {})
      throw new Error('no')
    })
    await catchError(failing)
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(await count(request.key)).toBe(0)
  })
})

test('a decision and a fence that are not awaited are part of the transaction', async () => {
  const unknown = makeCall()
  await catchError(once.transaction(unknown, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
  const lock = await locks(once).acquire('ledger', { account, ttlMs: 60_000, autoExtend: false })
  const calls: Promise<unknown>[] = []
  await once.transaction(makeCall(), async (tx) => {
    const reply = { status: 200, headers: {}, body: '{}' }
    calls.push(operator(once).resolve(unknown, { by: 'ann', why: 'seen', reply, tx: tx as unknown as Tx }))
    calls.push(assertFence(tx as unknown as Tx, lock))
  })
  await Promise.all(calls)
  expect((await once.explain(unknown)).state).toBe('completed')
})

test('a call that never ends ends its transaction when the time is over, and nothing is written', async () => {
  const door = shop.open({ store: { transactionMaxMs: 300 } })
  const { key, ...call } = makeCall()
  const running = door.transaction({ ...call, key }, async (tx) => {
    const on = tx as unknown as Tx
    inbox(door)
      .once(on, { account, source: 's', messageId: key }, () => new Promise(() => {}))
      .catch(() => {})
  })
  const error = await settleWithin(20_000, catchError(running))
  expect(error).toMatchObject({ code: 'deadline_exceeded' })
  expect(await countOf('inbox', 'message_id', key)).toBe(0)
})

describe('a call that never ends, inside a call on a client of the caller', () => {
  /** What a call on the client runs a function in, which leaves a call open. */
  const AROUND: Readonly<
    Record<string, (door: Onlyonce<PostgresTx>, tx: Tx, work: (tx: Tx) => void) => Promise<unknown>>
  > = {
    'once.within': (door, tx, work) => door.within(tx, makeCall(), async (inner) => work(inner as Tx)),
    'inbox.once': (door, tx, work) =>
      inbox(door).once(tx, { account, source: 's', messageId: makeCall().key }, async () => work(tx)),
    'once.within inside once.within, whose function goes on': (door, tx, work) =>
      door.within(tx, makeCall(), async (outer) => {
        await catchError(door.within(outer, makeCall(), async (inner) => work(inner as Tx)))
        return 'all is well'
      }),
    'once.within, behind a savepoint that its function rolls back to': (door, tx, work) =>
      door.within(tx, makeCall(), async (outer) => {
        await outer.query('SAVEPOINT mine')
        await catchError(door.within(outer, makeCall(), async (inner) => work(inner as Tx)))
        await outer.query('ROLLBACK TO SAVEPOINT mine')
        return 'all is well'
      }),
  }

  test.each(Object.entries(AROUND))('%s: aborts the transaction when the time is over', async (_, around) => {
    const door = shop.open({ store: { transactionMaxMs: 300 } })
    await door.start()
    const client = await beginCaller(shop)
    const { key } = makeCall()
    const gate = makeGate()
    let zombie: Promise<unknown> | undefined
    await leaveEffect(client, key)
    const waited = around(door, client as unknown as Tx, (tx) => {
      zombie = catchError(
        door.within(tx, makeCall({ key, operation: 'never' }), async (inner) => {
          await leaveEffect(inner, key)
          await gate.pass()
          await leaveEffect(inner, key)
        }),
      )
    })
    const error = await settleWithin(20_000, catchError(waited))
    expect(error).toMatchObject({ code: 'deadline_exceeded' })
    expect(error.message).toContain('its COMMIT rolls back')
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK')
    // A later transaction of the client is not the one that was left.
    await client.query('BEGIN')
    gate.open()
    expect(await zombie).toMatchObject({ code: 'deadline_exceeded' })
    const next = makeCall()
    await once.within(client, next, (tx) => leaveEffect(tx, next.key))
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect([await shop.countEffects(key), await shop.countEffects(next.key)]).toEqual([0, 1])
    expect(await countOf('records', 'key', key)).toBe(0)
  })

  test('ends late, and sends nothing in a later transaction of the client', async () => {
    const door = shop.open({ store: { transactionMaxMs: 300 } })
    await door.start()
    const client = await beginCaller(shop)
    const { key } = makeCall()
    const gate = makeGate()
    const message = (messageId: string) => ({ account, source: 's', messageId })
    let open: Promise<unknown> | undefined
    const waited = inbox(door).once(client, message(key), async () => {
      open = catchError(inbox(door).once(client, message(`${key} inside`), () => gate.pass()))
    })
    expect(await settleWithin(20_000, catchError(waited))).toMatchObject({ code: 'deadline_exceeded' })
    await client.query('ROLLBACK')
    await client.query('BEGIN')
    await leaveEffect(client, key)
    gate.open()
    expect(await open).toMatchObject({ code: 'deadline_exceeded' })
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(await shop.countEffects(key)).toBe(1)
  })
})
