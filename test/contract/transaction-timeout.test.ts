/** Transactions that take longer than `transaction_timeout` of the server allows (PostgreSQL 17 and later; 25P04). */
import type pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Onlyonce, operation, reply } from '../../src/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, type Shop, settleWithin } from './shop.ts'

const SOON_MS = 20_000
const KNOWN_SINCE = 170_000
/** What an earlier server says of a setting that it does not know. */
const UNKNOWN_SETTING = '42704'
const FATAL = { code: '25P04', severity: 'FATAL' }

let shop: Shop
let once: Onlyonce<PostgresTx>
let knows: boolean

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
  const { rows } = await shop.observer.query(`SELECT current_setting('server_version_num')::int AS version`)
  knows = rows[0].version >= KNOWN_SINCE
})

type Tx = { query(text: string, values?: unknown[]): Promise<unknown> }
const bound = (tx: Tx) => tx.query(`SET LOCAL transaction_timeout = '100ms'`)
const sleep = (tx: Tx) => tx.query('SELECT pg_sleep(10)')

/** What is told where the server has ended the transaction; an earlier server has refused the setting. */
function expectTold(error: { readonly code?: unknown; readonly cause?: unknown }): void {
  if (knows) expect(error).toMatchObject({ code: 'deadline_exceeded', cause: FATAL })
  else expect([error.code, (error.cause as { code?: string } | undefined)?.code]).toContain(UNKNOWN_SETTING)
}

describe('a transaction of the library', () => {
  test.each<[string, (tx: Tx) => Promise<unknown>]>([
    ['in a statement', sleep],
    ['in a statement, whose error the function ignores', (tx) => sleep(tx).catch(() => {})],
  ])('that the server ends %s is told as one that took too long', async (_, take) => {
    const call = makeCall()
    const running = once.transaction(call, async (tx) => {
      await leaveEffect(tx, call.key)
      await bound(tx)
      await take(tx)
    })
    expectTold(await settleWithin(SOON_MS, catchError(running)))
    expect(await shop.countEffects(call.key)).toBe(0)
    const again = await once.transaction(call, (tx) => leaveEffect(tx, call.key))
    expect([again.outcome, await shop.countEffects(call.key)]).toEqual(['executed', 1])
  })

  test('that the server ends in a step of an operation: the step is tried again later', async () => {
    const { account, key, input } = makeCall()
    let slow = true
    const pay = operation('payments.too_slow', async (op) => {
      await op.transaction('created', (tx) => leaveEffect(tx, key))
      return await op.transaction('settled', async (tx) => {
        await leaveEffect(tx, key)
        if (slow) await bound(tx).then(() => sleep(tx))
        return reply(201, {})
      })
    })
    const error = await settleWithin(SOON_MS, catchError(once.run(pay, { account, key, input })))
    // What is durable was done, so the caller does not hear that its request changed nothing.
    if (knows)
      expect(error).toMatchObject({ code: 'unfinished', cause: { code: 'deadline_exceeded', cause: FATAL } })
    expect(await shop.countEffects(key)).toBe(1)
    slow = false
    if (knows) expect(await once.run(pay, { account, key, input })).toMatchObject({ outcome: 'executed' })
    if (knows) expect(await shop.countEffects(key)).toBe(2)
  })
})

describe('a transaction of the caller, in which within works', () => {
  const ends = (client: pg.PoolClient) => new Promise((resolve) => client.once('end', resolve))

  test.each<[string, (tx: Tx, client: pg.PoolClient) => Promise<unknown>]>([
    ['in a statement of the function, which ignores its error', (tx) => sleep(tx).catch(() => {})],
    ['while no statement is under way', (_, client) => ends(client)],
  ])('that the server ends %s is told as one that took too long', async (_, take) => {
    const client = await beginCaller(shop)
    client.on('error', () => {})
    const call = makeCall()
    const running = once.within(client, call, async (tx) => {
      await bound(tx)
      await take(tx, client)
    })
    expectTold(await settleWithin(SOON_MS, catchError(running)))
    expect((await once.explain(call)).state).toBe('none')
  })
})
