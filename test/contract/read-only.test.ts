import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { notExecuted, type Onlyonce, operation, reply } from '../../src/index.ts'
import { relay } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { nodeUnderTest } from '../adapters/servers/node.ts'
import type { Route } from '../adapters/under-test.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

/** As a standby answers, and a primary that an administrator has set to read only: 25006. */
const READ_ONLY = { options: '-c default_transaction_read_only=on' }
const AWAY = { code: 'store_unavailable', status: 503, retryable: true }

const note = operation('notes.write', async (op, input: { readonly note: string }) => {
  await op.transaction('noted', (tx) => leaveEffect(tx, input.note))
  return reply(201, { done: true })
})
const ask = operation('notes.ask', async (op, _: { readonly note: string }) => {
  await op.call('asked', { call: async ({ key }) => ({ key }), idempotent: true })
  return reply(201, { done: true })
})

let shop: Shop
let pool: pg.Pool
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  // The keys of the ring are noted by a process that may write.
  await shop.open({ operations: [note, ask] }).start()
  pool = shop.database.direct({ max: 3, ...READ_ONLY })
  once = shop.open({ pool, operations: [note, ask] })
})

describe('on a database that only reads', () => {
  test.each([
    ['writes', (tx: PostgresTx) => leaveEffect(tx, 'never')],
    ['writes nothing but its record', async () => null],
  ])('a transaction that %s is told that the store is away', async (_, work) => {
    const error = await catchError(once.transaction(makeCall(), work))
    expect(error).toMatchObject({ ...AWAY, cause: { code: '25006' } })
  })

  test('a transaction whose work throws an error of its own is told that error', async () => {
    const own = new Error('no note, no order')
    const work = (tx: PostgresTx) => leaveEffect(tx, 'never').catch(() => Promise.reject(own))
    expect(await catchError(once.transaction(makeCall(), work))).toBe(own)
  })

  test('a handler is told so before it runs', async () => {
    let runs = 0
    const work = async () => {
      runs += 1
    }
    expect(await catchError(once.execute(makeCall(), work))).toMatchObject(AWAY)
    expect(runs).toBe(0)
  })

  test.each([note, ask])('an operation is told so: %o', async (called) => {
    const call = { account: 'acct_1', key: makeCall().key, input: { note: 'never' }, deadlineMs: 1_500 }
    // The server has refused the claim, so this request has begun nothing.
    const told = { ...AWAY, executed: 'not_by_this_request' }
    expect(await catchError(once.run(called, call))).toMatchObject(told)
  })

  test('an operation that is to be taken over is told so, and stays as it is', async () => {
    const call = { account: 'acct_1', key: makeCall().key, input: { note: 'never' }, deadlineMs: 1_500 }
    let away = true
    const take = operation('notes.take', async (op) => {
      if (away) throw notExecuted()
      return await op.transaction('done', async () => reply(201, 'done'))
    })
    const writes = shop.open()
    await catchError(writes.run(take, call))
    away = false
    const told = { ...AWAY, executed: 'not_by_this_request' }
    expect(await catchError(once.run(take, call))).toMatchObject(told)
    expect((await writes.run(take, call)).outcome).toBe('executed')
  })

  test('a call within a transaction is told so', async () => {
    const tx = await pool.connect()
    try {
      await tx.query('BEGIN')
      expect(await catchError(once.within(tx, makeCall(), async () => null))).toMatchObject(AWAY)
    } finally {
      tx.release(true)
    }
  })

  test('a call within a transaction on a standby, which gives no transaction an id, is told so', async () => {
    const refused = Object.assign(new Error('recovery'), { code: '25006', severity: 'ERROR' })
    const tx = { query: () => Promise.reject(refused) }
    const told = await catchError(once.within(tx, makeCall(), async () => null))
    expect(told).toMatchObject({ ...AWAY, cause: refused })
  })

  test('a worker is told so', async () => {
    const worker = relay(once, { destinations: { nowhere: async () => {} } })
    expect(await catchError(worker.runOnce())).toMatchObject(AWAY)
  })

  test.each(['/transaction', '/handler', '/operation'])(
    '%s over HTTP is 503, and a problem',
    async (path) => {
      const { port, close } = await nodeUnderTest.serve(once, routes())
      cleanUpLater(close)
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: {
          'x-account': 'acct_1',
          'idempotency-key': makeCall().key,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ note: 'never' }),
      })
      const text = await response.text()
      expect([response.status, response.headers.get('content-type')], text).toEqual([
        503,
        'application/problem+json',
      ])
      expect(text).not.toMatch(/read-only|25006/)
    },
  )
})

function routes(): readonly Route[] {
  const route = (path: string, policy: Route['policy'], handle: Route['handle']): Route => ({
    method: 'POST',
    path,
    prefix: '',
    order: 'layer_first',
    policy: { deadlineMs: 1_500, ...policy },
    handle,
  })
  const done = { do: 'json', status: 201, value: {} } as const
  return [
    route('/transaction', { protect: 'transaction' }, async (input) => {
      await leaveEffect(input.once!.tx, 'never')
      return done
    }),
    route('/handler', {}, async () => done),
    route('/operation', { operation: note as never }, async () => done),
  ]
}
