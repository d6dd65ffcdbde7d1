import pg from 'pg'
import { beforeAll, expect, test } from 'vitest'
import type { Onlyonce, Queryable } from '../../src/index.ts'
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
} from '../contract/shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>
beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const account = 'acct_1'
const count = async (table: string, column: string, value: string): Promise<number> => {
  const { rows } = await shop.observer.query(
    `SELECT count(*)::int AS count FROM onlyonce.${table} WHERE ${column} = $1`,
    [value],
  )
  return rows[0].count
}

/** The same object as a caller that is not typed would pass it. */
const untyped = (on: Queryable) => on as pg.PoolClient

test('events and jobs are refused where no transaction is open, and nothing is written', async () => {
  const { emit, stage } = outbox(once)
  const pool = shop.database.pool({ max: 2 })
  const client = await pool.connect()
  // What is not pg's own client, such as the wrapper of a query builder, is asked too.
  const wrapper = { query: (text: string, values?: unknown[]) => client.query(text, values) }
  for (const on of [pool, client, wrapper]) {
    const refusals = [
      await catchError(emit(untyped(on), { account, type: 'alone' })),
      await catchError(emit(untyped(on), [{ account, type: 'alone', aggregate: 'a' }])),
      await catchError(stage(untyped(on), { account, job: 'alone' })),
    ]
    expect(refusals.map(({ code }) => code)).toEqual(Array(3).fill('transaction_required'))
  }
  expect([await count('events', 'type', 'alone'), await count('jobs', 'job', 'alone')]).toEqual([0, 0])
  for (const on of [client, wrapper]) {
    await client.query('BEGIN')
    await emit(on, { account, type: 'alone' })
    await stage(on, { account, job: 'alone' })
    await client.query('COMMIT')
  }
  client.release()
  expect([await count('events', 'type', 'alone'), await count('jobs', 'job', 'alone')]).toEqual([2, 2])
})

test('they are taken in once.transaction, in once.within and in a transaction whose BEGIN was not awaited', async () => {
  const { emit } = outbox(once)
  await once.transaction(makeCall(), async (tx) => void (await emit(tx, { account, type: 'joined' })))
  const client = await shop.database.pool({ max: 1 }).connect()
  const begun = client.query('BEGIN')
  await emit(client, { account, type: 'joined' })
  await begun
  await once.within(client, makeCall(), async (tx) => void (await emit(tx, { account, type: 'joined' })))
  await client.query('COMMIT')
  client.release()
  expect(await count('events', 'type', 'joined')).toBe(3)
})

const message = (messageId: string) => ({ account, source: 'gateway', messageId })

type Client = Awaited<ReturnType<typeof beginCaller>>
type Begin = (client: Client, note: string, work: () => Promise<void>) => Promise<{ outcome: string }>
const receive: Begin = (client, note, work) => inbox(once).once(client, message(note), work)
const within: Begin = (client, note, work) => once.within(client, makeCall({ key: note }), work)

test.each([
  ['a message beside a message', receive, receive],
  ['a message beside once.within', within, receive],
  ['a call of within beside a message', receive, within],
])('%s on one transaction is refused, and what is told of the first is true', async (name, first, second) => {
  const client = await beginCaller(shop)
  const gate = makeGate()
  const running = first(client, `${name}_1`, async () => {
    await leaveEffect(client, name)
    await gate.pass()
  })
  await gate.reached
  const error = await catchError(second(client, `${name}_2`, () => Promise.reject(new Error('no'))))
  expect(error).toMatchObject({ code: 'within_busy' })
  gate.open()
  expect(await running).toMatchObject({ outcome: 'executed' })
  await client.query('COMMIT')
  expect(await shop.countEffects(name)).toBe(1)
  const noted = await count('inbox', 'message_id', `${name}_1`)
  expect(noted + (await count('records', 'key', `${name}_1`))).toBe(1)
})

test('one inside the function of another is no trouble, and the transaction is free afterwards', async () => {
  const client = await beginCaller(shop)
  const nest = async (id: string) =>
    await inbox(once).once(client, message(id), async () => {
      const within = await once.within(client, makeCall(), async () => 1)
      const inner = await inbox(once).once(client, message(`${id}_inner`), async () => 1)
      return [within.outcome, inner.outcome]
    })
  for (const id of ['nested_1', 'nested_2']) {
    expect(await nest(id)).toEqual({ outcome: 'executed', value: ['executed', 'executed'] })
  }
  const around = await once.within(client, makeCall(), () => nest('nested_3'))
  expect(around).toMatchObject({ value: { outcome: 'executed' } })
  // Side by side inside the function they are refused all the same.
  const inside = await inbox(once).once(client, message('nested_4'), () =>
    Promise.allSettled(['a', 'b'].map((id) => inbox(once).once(client, message(`n4_${id}`), async () => 1))),
  )
  expect(inside).toMatchObject({
    value: [{ value: { outcome: 'executed' } }, { reason: { code: 'within_busy' } }],
  })
  await client.query('COMMIT')
})

const UUID = 2950
const asBytes = (text: string) => Buffer.from(text.replaceAll('-', ''), 'hex')
const types = {
  getTypeParser: (oid: number, format?: 'text') =>
    oid === UUID ? asBytes : pg.types.getTypeParser(oid, format),
} as never

test.each([
  ['another parser for uuid', { types }],
  ['binary results', { binary: true }],
])('what was staged, received and replayed is told truly by a client with %s', async (name, options) => {
  const client = await shop.database.pool({ max: 1, ...options } as pg.PoolConfig).connect()
  await client.query('BEGIN')
  const { stage } = outbox(once)
  const staged = await stage(client, { account, job: 'told', key: `${name}_1` })
  expect(staged).toMatchObject({ staged: true, id: expect.stringMatching(/^job_/) })
  const again = await stage(
    client,
    [1, 2].map((n) => ({ account, job: 'told', key: `${name}_${n}` })),
  )
  expect(again).toMatchObject([{ staged: false }, { staged: true }])
  const received = await receiveWebhook(once, {
    account,
    source: 's',
    id: name,
    payload: Buffer.from('{}'),
    tx: client,
  })
  expect(received).toMatchObject({ outcome: 'staged', jobId: expect.stringMatching(/^job_/) })
  const call = makeCall()
  expect(await once.within(client, call, async () => ({ a: 1 }))).toEqual({
    outcome: 'executed',
    value: { a: 1 },
  })
  expect(await once.within(client, call, async () => ({ a: 2 }))).toEqual({
    outcome: 'replayed',
    value: { a: 1 },
  })
  await client.query('COMMIT')
  client.release()
})
