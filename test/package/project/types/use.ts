import type { IncomingMessage } from 'node:http'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import { OnlyonceError, onlyonce, operation, reply, unwrap } from 'onlyonce'
import { idempotentFetch, OutcomeUnknown } from 'onlyonce/client'
import { pendingAction } from 'onlyonce/client/keys'
import { ERRORS } from 'onlyonce/errors'
import { idempotent as protectExpress } from 'onlyonce/express'
import { idempotency, idempotent as protectFastify } from 'onlyonce/fastify'
import { idempotent as protectFetch } from 'onlyonce/fetch'
import { idempotent as protectHono } from 'onlyonce/hono'
import type { Admit } from 'onlyonce/http'
import { parseStrictJson } from 'onlyonce/json'
import { derivedKey } from 'onlyonce/keys'
import { LIMITS } from 'onlyonce/limits'
import { locks } from 'onlyonce/locks'
import { memory } from 'onlyonce/memory'
import { idempotent as protectNode } from 'onlyonce/node'
import { logTo } from 'onlyonce/observe'
import { operator, type Page, type RecordSummary } from 'onlyonce/operator'
import { outbox } from 'onlyonce/outbox'
import { migrate, type PostgresTx, postgres } from 'onlyonce/postgres'
import type { Store } from 'onlyonce/store'
import { receiveWebhook } from 'onlyonce/webhooks'
import { startWorkers } from 'onlyonce/workers'
import pg from 'pg'

const pool = new pg.Pool()
const store: Store<PostgresTx> = postgres({ pool })
const once = onlyonce({ store, secret: process.env.ONLYONCE_SECRET, observe: logTo(console) })
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
export const admit: Admit = ({ account }) =>
  ({ admit: account !== derivedKey({ account, operation: 'o', key: 'k', step: 's' }) }) as never

export async function operate(): Promise<readonly unknown[]> {
  const page: Page<RecordSummary> = await operator(once).list({ limit: LIMITS.listMax })
  const value: number = unwrap(
    await once.execute({ account: 'a', operation: 'o', input: { id: 1 }, keyFrom: ['id'] }, async () => 1),
  )
  const lock = await locks(once).acquire('r', { account: 'a', ttlMs: 1_000 })
  await startWorkers(once, { operations: [pay] }).stop()
  return [
    page.items,
    value,
    lock.resource,
    ERRORS.key_reused.status,
    parseStrictJson('{}').value,
    await outbox(once).parked(),
  ]
}

const send: typeof fetch = idempotentFetch({ baseUrl: 'https://api.example.com' })
const checkout = pendingAction('checkout', { user: null })
export const paid = checkout.run({ amount: 1 }, async ({ key }) => {
  const response = await send('/v1/payments', { method: 'POST', headers: { 'idempotency-key': key } })
  if (response.status === 409) throw new OutcomeUnknown({ code: 'in_progress' })
  return response.ok
})
