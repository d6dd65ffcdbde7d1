/** Calls on a client of the caller's whose transaction the caller ends while the call is under way. */
import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Onlyonce } from '../../src/index.ts'
import { assertFence, type Lock, locks } from '../../src/locks/index.ts'
import { operator } from '../../src/operator/index.ts'
import { inbox, outbox } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { receiveWebhook } from '../../src/webhooks/index.ts'
import { catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>
let lock: Lock
let client: Client

beforeAll(async () => {
  shop = await openShop()
  client = await shop.database.pool({ max: 1 }).connect()
  once = shop.open()
  lock = await locks(once).acquire('ledger', { account: 'acct_1', ttlMs: 60_000, autoExtend: false })
})

const account = 'acct_1'
const SIGNED = { by: 'ann@example.com', why: 'ticket 4711' }
const REPLY = { status: 422, headers: {}, body: '{}' }

async function unknownCall() {
  const call = makeCall()
  await catchError(once.transaction(call, (tx) => tx.query('SELECT 1; COMMIT; SELECT 2')))
  return call
}

async function retryableCall() {
  const call = makeCall()
  await catchError(once.transaction(call, () => Promise.reject(new Error('no'))))
  return call
}

type Client = pg.PoolClient
/** Prepares a call, and gives the function that makes it. */
type Prepare = () => Promise<(client: Client) => Promise<unknown>>
const event = () => ({ account, type: 'paid', payload: { id: 1 } })
const message = () => ({ account, source: 'gateway', messageId: randomUUID() })

const CALLS: Readonly<Record<string, Prepare>> = {
  emit: async () => (client) => outbox(once).emit(client, event()),
  'emit in order': async () => (client) => outbox(once).emit(client, { ...event(), aggregate: 'payment:1' }),
  'emit of several': async () => (client) =>
    outbox(once).emit(client, [event(), { ...event(), aggregate: 'payment:2' }]),
  stage: async () => (client) => outbox(once).stage(client, { account, job: 'receipt' }),
  'inbox.once': async () => (client) => inbox(once).once(client, message(), async () => 1),
  receiveWebhook: async () => (client) =>
    receiveWebhook(once, {
      account,
      source: 'gateway',
      id: randomUUID(),
      payload: Buffer.from('{}'),
      tx: client,
    }),
  'once.within': async () => (client) => once.within(client, makeCall(), async () => 1),
  'once.within on a record that may run again': async () => {
    const call = await retryableCall()
    return (client) => once.within(client, call, async () => 1)
  },
  'resolve of an operator': async () => {
    const call = await unknownCall()
    return (client) => operator(once).resolve(call, { ...SIGNED, reply: REPLY, tx: client })
  },
  assertFence: async () => (client) => assertFence(client, lock),
}

/** What stands in the database now. */
async function standing(): Promise<unknown> {
  const { rows } = await shop.observer.query(
    `SELECT (SELECT count(*) FROM onlyonce.events) AS events, (SELECT count(*) FROM onlyonce.fresh) AS fresh,
       (SELECT count(*) FROM onlyonce.aggregates) AS aggregates, (SELECT count(*) FROM onlyonce.jobs) AS jobs,
       (SELECT count(*) FROM onlyonce.inbox) AS inbox, (SELECT count(*) FROM onlyonce.audit) AS audit,
       (SELECT count(*) FROM onlyonce.attempts) AS attempts,
       (SELECT array_agg(state || fence ORDER BY account, operation, key) FROM onlyonce.records) AS records`,
  )
  return rows[0]
}

const HANDLES = {
  'a client of pg': (client: Client) => client,
  'an object around one': (client: Client) => ({ query: client.query }) as Client,
}

type Handle = keyof typeof HANDLES

/**
 * Ends the transaction right before one statement of the call is sent, as another function of the caller's does that shares the client. Null
 * where the call had fewer statements than that.
 */
async function endBefore(statement: number, prepare: Prepare, ends: readonly string[], handle: Handle) {
  const call = await prepare()
  const query = client.query.bind(client) as Client['query']
  await query('BEGIN')
  let sent = 0
  let stood: unknown = null
  client.query = (async (text: string, values?: unknown[]) => {
    if (sent++ === statement) {
      for (const end of ends) await query(end)
      stood = await standing()
    }
    return query(text, values)
  }) as unknown as Client['query']
  const told = await call(HANDLES[handle](client)).then(
    () => 'fulfilled',
    (error) => error.code,
  )
  client.query = query
  const { command } = await query('COMMIT')
  return stood === null ? null : { told, stood, stands: await standing(), command }
}

const NO_SAVEPOINT = /^(?:emit|stage|assertFence)/

const CASES: [Handle, string[]][] = [
  ['a client of pg', ['ROLLBACK']],
  ['a client of pg', ['COMMIT']],
  // Another transaction on the same connection, which has written something.
  ['a client of pg', ['ROLLBACK', 'BEGIN', "INSERT INTO effects (note) VALUES ('another')"]],
  ['an object around one', ['ROLLBACK']],
]

describe.each(CASES)('on %s, whose transaction is ended by %s', (handle, ends) => {
  // The object makes no difference but to how a transaction is found that is over before the first statement.
  const calls = Object.entries(CALLS).filter(
    ([name]) => handle === 'a client of pg' || /^(?:emit|once.within)$/.test(name),
  )
  test.each(calls)('%s writes nothing any more, and says so', async (name, prepare) => {
    // Where another transaction begins before the first statement, or before a decision is taken by what was looked at, the call is in that one.
    const first = ends.length === 1 ? 0 : name === 'resolve of an operator' ? 3 : 1
    let statement = first
    for (; ; statement += 1) {
      const seen = await endBefore(statement, prepare, ends, handle)
      if (seen === null) break
      const { told, stood, stands, command } = seen
      expect({ statement, stands }).toEqual({ statement, stands: stood })
      if (ends.length > 1) expect({ statement, told }).not.toEqual({ statement, told: 'fulfilled' })
      // A call without a savepoint does no harm to the other transaction.
      if (ends.length > 1 && NO_SAVEPOINT.test(name)) expect(command).toBe('COMMIT')
      if (ends.length === 1) expect({ statement, told }).toEqual({ statement, told: 'transaction_required' })
    }
    expect(statement).toBeGreaterThan(first)
  })
})

test('the function of within writes nothing behind the end of its transaction', async () => {
  const call = makeCall()
  await client.query('BEGIN')
  const working = once.within(client, call, async (tx) => {
    await client.query('ROLLBACK')
    await leaveEffect(tx as Client, call.key)
  })
  expect(await catchError(working)).toMatchObject({ code: 'transaction_required' })
  expect(await shop.countEffects(call.key)).toBe(0)
  expect((await once.explain(call)).state).toBe('none')
})
