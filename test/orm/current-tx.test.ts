/** The transaction of the request that runs, found without being handed on. */
import { createServer } from 'node:http'
import express from 'express'
import { fastify } from 'fastify'
import { beforeAll, expect, test } from 'vitest'
import { idempotent } from '../../src/http/adapters/express/index.ts'
import { idempotency, idempotent as protect } from '../../src/http/adapters/fastify/index.ts'
import { type Onlyonce, operation } from '../../src/index.ts'
import { currentTx, poolOf } from '../../src/orm/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { listening } from '../adapters/servers/listen.ts'
import { makeBarrier, makeCall, openShop, type Shop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

let shop: Shop
let once: Onlyonce<PostgresTx>

beforeAll(async () => {
  shop = await openShop()
  once = shop.open({ store: { currentTx: true } })
  await once.start()
})

/** A layer that is not handed the transaction. */
async function write(note: string): Promise<void> {
  await Promise.resolve()
  await poolOf(currentTx()).query('INSERT INTO effects (note) VALUES ($1)', [note])
}

const codeOf = (ask: () => unknown): unknown => {
  try {
    ask()
  } catch (error) {
    return (error as { code: string }).code
  }
}

test('each transaction finds its own, also where many run at once', async () => {
  const meet = makeBarrier(5)
  const found = await Promise.all(
    [1, 2, 3, 4, 5].map((n) =>
      once.transaction(makeCall(), async (tx) => {
        await meet()
        await write(`own ${n}`)
        return currentTx() === tx
      }),
    ),
  )
  expect(found.map((result) => 'value' in result && result.value)).toEqual([true, true, true, true, true])
  expect(await shop.countEffects('own 3')).toBe(1)
})

test('a step of an operation finds its own, and there is none between steps', async () => {
  const codes: unknown[] = []
  const stepped = operation('stepped', async (op, note: string) => {
    codes.push(codeOf(currentTx))
    await op.transaction('first', async () => void (await write(note)))
    codes.push(codeOf(currentTx))
    return { done: true }
  })
  const { account, key } = makeCall()
  expect(await once.run(stepped, { account, key, input: 'stepped' })).toMatchObject({ outcome: 'executed' })
  expect(codes).toEqual(['current_tx_missing', 'current_tx_missing'])
  expect(await shop.countEffects('stepped')).toBe(1)
})

test('there is none outside, none where it was not asked for, and none after the end', async () => {
  expect(codeOf(currentTx)).toBe('current_tx_missing')
  const without = shop.open()
  await without.transaction(makeCall(), async () => {
    expect(codeOf(currentTx)).toBe('current_tx_missing')
  })
  let late: Promise<unknown> | undefined
  let end = () => {}
  const over = new Promise<void>((resolve) => {
    end = resolve
  })
  await once.transaction(makeCall(), async () => {
    late = over.then(() => codeOf(currentTx))
  })
  end()
  expect(await late).toBe('transaction_over')
})

async function post(port: number, note: string): Promise<number> {
  const headers = { 'idempotency-key': crypto.randomUUID(), 'content-type': 'application/json' }
  const body = JSON.stringify({ note })
  return (await fetch(`http://127.0.0.1:${port}/notes`, { method: 'POST', headers, body })).status
}

test('a handler of Express finds it, also behind a body parser', async () => {
  const app = express()
  const layer = idempotent(once, { account: () => 'acct_1', protect: 'transaction' })
  app.post('/notes', layer, express.json(), async (request, response) => {
    await write(request.body.note)
    response.status(201).end()
  })
  const { port, close } = await listening(createServer(app))
  cleanUpLater(close)
  expect(await Promise.all([post(port, 'express'), post(port, 'express')])).toEqual([201, 201])
  expect(await shop.countEffects('express')).toBe(2)
})

test('a handler of Fastify finds it', async () => {
  const app = fastify()
  await app.register(idempotency, { once, account: () => 'acct_1' })
  const preHandler = protect({ protect: 'transaction' })
  app.post<{ Body: { note: string } }>('/notes', { preHandler }, async (request, reply) => {
    await write(request.body.note)
    return reply.code(201).send()
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  cleanUpLater(() => app.close())
  expect(await post((app.server.address() as { port: number }).port, 'fastify')).toBe(201)
  expect(await shop.countEffects('fastify')).toBe(1)
})
