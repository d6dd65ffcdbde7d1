import { describe, expectTypeOf, it } from 'vitest'
import { onlyonce } from '../index.ts'
import { relay } from '../outbox/index.ts'
import { postgres } from '../store/postgres/index.ts'
import type { Worker } from '../workers/index.ts'
import {
  type Page,
  type Received,
  receiveWebhook,
  signWebhook,
  type VerifiedWebhook,
  verifyWebhook,
  type WebhookEndpoint,
  webhooks,
} from './index.ts'

const once = onlyonce({ store: postgres({ connectionString: '' }), secret: '' })
const hooks = webhooks(once)
const body = Buffer.from('{}')

describe('webhooks in', () => {
  it('are verified over bytes, with the headers of Node.js or of fetch', () => {
    const headers: import('node:http').IncomingHttpHeaders = {}
    const verified = verifyWebhook({ scheme: 'stripe', headers, body, secrets: ['a', 'b'] })
    expectTypeOf(verified).toEqualTypeOf<VerifiedWebhook>()
    verifyWebhook({ scheme: 'standard', headers: new Headers(), body: new Uint8Array(), secrets: 'a' })
    // @ts-expect-error text is not what was signed
    verifyWebhook({ scheme: 'stripe', headers, body: '{}', secrets: 'a' })
    // @ts-expect-error there is no such scheme
    signWebhook({ scheme: 'github', body, secrets: 'a' })
  })

  it('are received with or without a transaction', () => {
    const call = { account: 'a', source: 's', id: 'i', payload: body }
    expectTypeOf(receiveWebhook(once, call)).resolves.toEqualTypeOf<Received>()
    once.transaction({ account: 'a', operation: 'o', key: 'k' }, async (tx) => {
      await receiveWebhook(once, { ...call, tx })
    })
  })
})

describe('webhooks out', () => {
  it('are a destination and a worker', () => {
    relay(once, { destinations: { webhooks: hooks.destination } })
    relay(once, { destinations: { webhooks: { publisher: hooks.destination, types: ['t'] } } })
    expectTypeOf(hooks.deliverer()).toMatchTypeOf<Worker>()
  })

  it('have endpoints of accounts', () => {
    expectTypeOf(hooks.endpoints.list({ account: 'a' })).resolves.toEqualTypeOf<Page<WebhookEndpoint>>()
    // @ts-expect-error there is no endpoint without an account
    hooks.endpoints.create({ url: 'https://shop.example/' })
    // @ts-expect-error one message, or a range
    hooks.replay({ account: 'a', endpoint: 'we_1' })
  })
})
