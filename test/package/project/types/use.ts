import type { IncomingMessage } from 'node:http'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { OnlyonceError, onlyonce, operation, reply } from 'onlyonce'
import { idempotentFetch, OutcomeUnknown } from 'onlyonce/client'
import { pendingAction } from 'onlyonce/client/keys'
import { idempotent as protectExpress } from 'onlyonce/express'
import { idempotency, idempotent as protectFastify } from 'onlyonce/fastify'
import { idempotent as protectFetch } from 'onlyonce/fetch'
import { idempotent as protectHono } from 'onlyonce/hono'
import { memory } from 'onlyonce/memory'
import { idempotent as protectNode } from 'onlyonce/node'
import { migrate, type PostgresTx, postgres } from 'onlyonce/postgres'
import { receiveWebhook } from 'onlyonce/webhooks'
import pg from 'pg'

const pool = new pg.Pool()
const once = onlyonce({ store: postgres({ pool }), secret: 'secret' })
const account = () => 'acct_1'

export const pay = operation('payments.create', async (op, input: { readonly amount: number }) =>
  op.transaction('created', async (tx) => {
    await tx.query('SELECT $1::int', [input.amount])
    return reply(201, { amount: input.amount })
  }),
)

express().post('/orders', protectExpress(once, { account }), (_request, response) => {
  response.json({})
})
const app = fastify()
app.register(idempotency, { once, account })
app.post('/orders', { preHandler: protectFastify() }, async () => ({}))
new Hono().post('/orders', protectHono(once, { account }), (c) => c.json({}))
export const POST = protectFetch(once, { account, operation: 'orders.create' }, async () => Response.json({}))
export const listener = protectNode(
  once,
  { account: (request: IncomingMessage) => request.headers.host, operation: 'orders.create' },
  (_request, response) => {
    response.end()
  },
)

export async function work(tx: PostgresTx): Promise<number> {
  await migrate(pool, { schema: 'onlyonce', mode: 'verify' })
  const result = await once.transaction({ account: 'a', operation: 'o', key: 'k' }, async () => 1)
  if (result.outcome === 'executed' || result.outcome === 'replayed') return result.value
  try {
    await tx.query('SELECT 1')
  } catch (error) {
    if (error instanceof OnlyonceError) return error.status
  }
  return onlyonce({ store: memory(), secret: 'secret' }) === undefined ? 0 : 1
}

export const receive: unknown = receiveWebhook

const send: typeof fetch = idempotentFetch({ baseUrl: 'https://api.example.com' })
const checkout = pendingAction('checkout', { user: null })
export const paid = checkout.run({ amount: 1 }, async ({ key }) => {
  const response = await send('/v1/payments', { method: 'POST', headers: { 'idempotency-key': key } })
  if (response.status === 409) throw new OutcomeUnknown({ code: 'in_progress' })
  return response.ok
})
