/** Calls on a client of the caller's that other code of the caller's uses at the same time. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { Onlyonce, Queryable } from '../../src/index.ts'
import { outbox } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { beginCaller, catchError, leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open()
  await once.start()
})

const HANDLES: Readonly<Record<string, (client: Queryable) => Queryable>> = {
  'a client of pg': (client) => client,
  'an object around one': (client) => ({ query: (text, values) => client.query(text, values) }),
}

describe.each(Object.entries(HANDLES))('the tx of within, on %s', (_name, handle) => {
  test('ends with its function: what a branch of it sends later is refused', async () => {
    const [call, client] = [makeCall(), await beginCaller(shop)]
    let tx!: Queryable
    const working = once.within(handle(client), call, async (inner) => {
      tx = inner
      await Promise.reject(new Error('the risk service is away'))
    })
    expect(await catchError(working)).toMatchObject({ message: 'the risk service is away' })
    const { query } = tx
    for (const late of [
      leaveEffect(tx, call.key),
      query('SELECT 1'),
      outbox(once).emit(tx, { account: 'acct_1', type: call.key }),
      once.within(tx, makeCall(), async () => 1),
    ]) {
      expect(await catchError(late)).toMatchObject({ code: 'transaction_over' })
    }
    expect((await client.query('COMMIT')).command).toBe('COMMIT')
    expect(await shop.countEffects(call.key)).toBe(0)
    // A refusal that is not awaited does not end the process.
    void query('SELECT 1')
  })
})
