/**
 * Two copies of the package in one process, as the ESM and the CommonJS build are, or what an application and a library of its own
 * bring: each gives its objects to functions of the other.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { inspect } from 'node:util'
import { Controller, Post } from '@nestjs/common'
import express, { type RequestHandler } from 'express'
import { fastify } from 'fastify'
import { beforeAll, describe, expect, test, vi } from 'vitest'
import { VERSION } from '../../src/core/version.ts'
import { idempotent } from '../../src/http/adapters/express/index.ts'
import { idempotency } from '../../src/http/adapters/fastify/index.ts'
import * as root from '../../src/index.ts'
import { assertFence, locks } from '../../src/locks/index.ts'
import { memory } from '../../src/store/memory/index.ts'
import { type PostgresTx, postgres } from '../../src/store/postgres/index.ts'
import { startWorkers } from '../../src/workers/index.ts'
import { Client } from '../adapters/client.ts'
import { listening } from '../adapters/servers/listen.ts'
import { onExpress } from '../adapters/servers/nest.ts'
import { openApp } from '../adapters/servers/nest-app.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { catchError, makeCall, openShop, SECRET, type Shop } from './shop.ts'

vi.resetModules()
const here = { ...root, assertFence, locks, memory, postgres, startWorkers }
const there = {
  ...(await import('../../src/index.ts')),
  ...(await import('../../src/locks/index.ts')),
  ...(await import('../../src/store/postgres/index.ts')),
  ...(await import('../../src/workers/index.ts')),
}
const thereExpress = await import('../../src/http/adapters/express/index.ts')
const thereFastify = await import('../../src/http/adapters/fastify/index.ts')
const thereNest = await import('../../src/http/adapters/nest/index.ts')

let shop: Shop
let foreign: root.Onlyonce<PostgresTx>
const account = () => 'acct_1'

beforeAll(async () => {
  shop = await openShop()
  // The store of one copy, the front door of the other.
  const store = there.postgres({ pool: shop.database.pool({ max: 5 }) })
  foreign = here.onlyonce({ store, secret: SECRET, background: false })
  cleanUpLater(() => foreign.close())
})

test('they are two, of the version that package.json names', () => {
  expect(there.OnlyonceError).not.toBe(here.OnlyonceError)
  expect(VERSION).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version)
})

describe('errors', () => {
  test('are known by instanceof, and nothing else is', () => {
    expect(there.notExecuted()).toBeInstanceOf(here.OnlyonceError)
    for (const other of [new Error('no'), null, undefined, 'text', {}, here.OnlyonceError]) {
      expect((other as unknown) instanceof here.OnlyonceError).toBe(false)
    }
  })

  test('of a class that extends it stay apart from others', () => {
    class Own extends here.OnlyonceError {}
    expect(here.callRefused()).not.toBeInstanceOf(Own)
    expect(new Own('call_refused')).toBeInstanceOf(Own)
    expect(new Own('call_refused')).toBeInstanceOf(there.OnlyonceError)
  })

  test('prove nothing to the other copy that they proved to one', async () => {
    const inner = there.onlyonce({
      store: here.postgres({ pool: shop.database.pool({ max: 2 }) }),
      secret: SECRET,
      background: false,
    })
    cleanUpLater(() => inner.close())
    const work = () =>
      inner.execute(makeCall(), async () => {
        throw there.notExecuted()
      })
    expect(await catchError(foreign.execute(makeCall(), work))).toMatchObject({ code: 'handler_failed' })
  })

  test('say to either copy that nothing was executed', async () => {
    const call = makeCall()
    const refuse = async () => {
      throw there.notExecuted()
    }
    expect(await catchError(foreign.execute(call, refuse))).toMatchObject({ code: 'not_executed' })
    expect(await foreign.execute(call, async () => 1)).toMatchObject({ outcome: 'executed' })
  })

  test('of an invalid request are answered by either', async () => {
    const call = makeCall()
    const refuse = async () => {
      throw there.invalid({ status: 422 })
    }
    expect(await catchError(foreign.transaction(call, refuse))).toMatchObject({ code: 'request_invalid' })
    expect(await foreign.transaction(call, async () => 1)).toMatchObject({ outcome: 'executed' })
  })
})

test('a reply of one ends an operation that the other runs', async () => {
  const pay = there.operation(`copies.${randomUUID().slice(0, 8)}`, async (op) =>
    op.transaction('done', async () => there.reply(201, { paid: true })),
  )
  const run = { account: 'acct_1', key: randomUUID(), input: null }
  expect(await foreign.run(pay as never, run as never)).toMatchObject({ value: { paid: true } })
})

test('a lock of one is checked by the other', async () => {
  const lock = await there.locks(foreign).acquire('copies', { account: 'acct_1', ttlMs: 60_000 })
  await foreign.transaction(makeCall(), async (tx) => here.assertFence(tx, lock))
  await expect(here.assertFence(shop.observer, { ...lock })).rejects.toThrow(/Pass the lock/)
})

test('a transaction that one works in is busy for the other', async () => {
  const client = await shop.database.pool({ max: 1 }).connect()
  cleanUpLater(async () => client.release())
  const other = there.onlyonce({
    store: here.postgres({ pool: shop.database.pool({ max: 2 }) }),
    secret: SECRET,
    background: false,
  })
  cleanUpLater(() => other.close())
  await client.query('BEGIN')
  const inside = () => other.within(client, makeCall(), async () => 1)
  expect(await catchError(foreign.within(client, makeCall(), inside))).toMatchObject({ code: 'within_busy' })
  await client.query('ROLLBACK')
})

test('a worker that one has started is not started by the other', async () => {
  const worker = { name: 'copies', runOnce: async () => ({ done: 0, more: false }) }
  const started = here.startWorkers(foreign, { defaults: false, workers: [worker] })
  cleanUpLater(() => started.stop())
  expect(() => there.startWorkers(foreign, { defaults: false, workers: [worker] })).toThrow(/runs already/)
})

describe('routes', () => {
  const post = async (client: Client, key: string) => {
    const { status, headers, text } = await client.send({ key })
    return { status, text, replayed: headers['idempotent-replayed'] === 'true' }
  }

  test('of Express: bytes kept by one are read by the other, which protects a route with the door of a third', async () => {
    const app = express()
    app.use(express.json({ verify: thereExpress.keepRawBody }))
    const layer = idempotent(there.onlyonce({ store: here.memory(), secret: SECRET, background: false }), {
      account,
    })
    let runs = 0
    app.post('/things', layer as unknown as RequestHandler, (_, response) => {
      runs += 1
      response.status(201).json({ runs })
    })
    const server = await listening(createServer(app as never))
    cleanUpLater(() => server.close())
    const client = new Client(server.port)
    const key = randomUUID()
    expect(await post(client, key)).toMatchObject({ status: 201, replayed: false })
    expect(await post(client, key)).toMatchObject({ status: 201, replayed: true })
    expect(runs).toBe(1)
  })

  test('of Fastify: a mark of one is seen by the plugin of the other', async () => {
    const app = fastify()
    cleanUpLater(() => app.close())
    await app.register(idempotency, { once: foreign, account })
    app.post('/things', { preHandler: thereFastify.idempotent() }, async () => ({}))
    const send = () =>
      app.inject({ method: 'POST', url: '/things', headers: { 'idempotency-key': 'a-key-of-copies' } })
    expect((await send()).headers['idempotent-replayed']).toBeUndefined()
    expect((await send()).headers['idempotent-replayed']).toBe('true')
  })

  test('of NestJS: decorators of one, the module of the other', async () => {
    let given: unknown
    class Things {
      create(once: unknown) {
        given = once
        return {}
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Things.prototype, 'create')!
    thereNest.Idempotency()(Things.prototype, 'create', 0)
    Post()(Things.prototype, 'create', descriptor)
    thereNest.Idempotent()(Things.prototype, 'create', descriptor)
    Controller('things')(Things)
    const client = await openApp(onExpress, foreign, Things)
    const key = randomUUID()
    expect(await post(client, key)).toMatchObject({ status: 201, replayed: false })
    expect(given).toMatchObject({ notExecuted: expect.any(Function) })
    expect(await post(client, key)).toMatchObject({ status: 201, replayed: true })
  })
})

describe('a front door', () => {
  test('shows nothing of what is behind it', () => {
    expect(inspect(foreign, { depth: 9 })).not.toMatch(/engine|secret/i)
    expect(Object.getOwnPropertySymbols({ ...foreign })).toEqual([])
  })

  test('of another version is refused, by both versions', () => {
    const door = { [Symbol.for('onlyonce.door')]: { version: '0.0.9', engine: {} } }
    expect(() => here.locks(door as never)).toThrow(/made by version 0\.0\.9 of the package, and this is /)
    expect(() => here.locks({} as never)).toThrow(/Pass what onlyonce\(\) returned/)
  })
})
