/** The services in examples/orms. */
import 'reflect-metadata'
import { createServer } from 'node:http'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { DataSource } from 'typeorm'
import { beforeAll, describe, expect, test } from 'vitest'
import { makeApp, TABLES } from '../../examples/orms/drizzle.ts'
import { Payout, payoutsModule, Wallet } from '../../examples/orms/nest-typeorm.ts'
import { listening } from '../adapters/servers/listen.ts'
import { openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

const SERVICES: Readonly<Record<string, (shop: Shop) => Promise<string>>> = {
  async 'drizzle.ts'(shop) {
    const { port, close } = await listening(createServer(makeApp(shop.open())))
    cleanUpLater(close)
    return `http://127.0.0.1:${port}`
  },
  async 'nest-typeorm.ts'(shop) {
    const { url } = shop.database
    const dataSource = await new DataSource({
      type: 'postgres',
      url,
      entities: [Wallet, Payout],
    }).initialize()
    const app = await NestFactory.create(payoutsModule(shop.open(), dataSource), new ExpressAdapter(), {
      logger: false,
      rawBody: true,
    })
    await app.listen(0, '127.0.0.1')
    cleanUpLater(async () => {
      await app.close()
      await dataSource.destroy()
    })
    return await app.getUrl()
  },
}

describe.each(Object.keys(SERVICES))('examples/orms/%s', (name) => {
  let shop: Shop
  let address: string
  beforeAll(async () => {
    shop = await openShop()
    await shop.observer.query(TABLES)
    await shop.observer.query("INSERT INTO wallets VALUES ('ann', 100)")
    address = await SERVICES[name]!(shop)
  })

  async function post(key: string, amount: number) {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key, 'x-demo-account': 'ann' }
    const body = JSON.stringify({ amount })
    const response = await fetch(`${address}/payouts`, { method: 'POST', headers, body })
    return { status: response.status, text: await response.text() }
  }
  const state = async () => {
    const text = `SELECT (SELECT amount FROM wallets WHERE owner = 'ann') AS left, (SELECT count(*)::int FROM payouts) AS payouts`
    return (await shop.observer.query(text)).rows[0]
  }

  test('pays out once, however often it is asked, and never more than is there', async () => {
    const key = crypto.randomUUID()
    const first = await post(key, 70)
    expect(first).toEqual({ status: 201, text: expect.any(String) })
    expect(await post(key, 70)).toEqual(first)
    expect((await post(crypto.randomUUID(), 70)).status).toBe(402)
    expect(await state()).toEqual({ left: 30, payouts: 1 })
  })
})
