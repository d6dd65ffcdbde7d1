import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/node/index.ts'
import type { IdempotencyContext } from '../../src/http/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { leaveEffect, makeCall, openShop, type Shop } from './shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await openShop()
})

test.each(['handler', 'transaction'] as const)(
  'a status below 200 is no reply: a %s that ends with one has failed, and its client hears so at once',
  async (protect) => {
    const { key } = makeCall()
    const policy = { account: () => 'acct_1', operation: `statuses.${protect}`, protect }
    const server = createServer(
      idempotent(shop.open(), policy, async (_request, response, own) => {
        await leaveEffect(
          protect === 'transaction' ? (own as IdempotencyContext<PostgresTx>).tx : shop.observer,
          key,
        )
        response.statusCode = 199
        response.end('made')
      }),
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    cleanUpLater(async () => void server.close())
    const send = async () => {
      const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
        method: 'POST',
        headers: { 'idempotency-key': key },
      })
      return { status: response.status, problem: await response.json() }
    }
    expect(await send()).toMatchObject({ status: 500, problem: { code: 'option_invalid' } })
    // What a handler did stands, and is not done again; a transaction was rolled back.
    const code = protect === 'handler' ? 'handler_failed' : 'option_invalid'
    expect(await send()).toMatchObject({ status: 500, problem: { code } })
    expect(await shop.countEffects(key)).toBe(protect === 'handler' ? 1 : 0)
  },
)
