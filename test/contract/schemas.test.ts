import { type } from 'arktype'
import * as v from 'valibot'
import { beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { idempotent } from '../../src/http/adapters/fetch/index.ts'
import type { StandardSchema } from '../../src/http/index.ts'
import { operation, reply } from '../../src/index.ts'
import { openShop, type Shop } from './shop.ts'

let shop: Shop

beforeAll(async () => {
  shop = await openShop()
})

/** The same order in each library: a name that is trimmed, and items with whole amounts. A shop is asked about in the background. */
const SCHEMAS: Readonly<Record<string, StandardSchema>> = {
  zod: z.object({
    shop: z
      .string()
      .trim()
      .refine(async (name) => name !== 'closed', 'The shop is closed'),
    items: z.array(z.object({ amount: z.int().positive() })).min(1),
  }),
  valibot: v.objectAsync({
    shop: v.pipeAsync(
      v.string(),
      v.trim(),
      v.checkAsync(async (name) => name !== 'closed', 'The shop is closed'),
    ),
    items: v.pipe(
      v.array(v.object({ amount: v.pipe(v.number(), v.integer(), v.minValue(1)) })),
      v.minLength(1),
    ),
  }),
  arktype: type({
    shop: type('string.trim').narrow(
      (name, context) => name !== 'closed' || context.reject('open (The shop is closed)'),
    ),
    items: type({ amount: 'number.integer >= 1' }).array().atLeastLength(1),
  }),
}

let served = 0

/** A route with an operation, which is given what the schema made of the body. */
function serve(validate: StandardSchema) {
  served += 1
  const once = shop.open()
  const order = operation(`orders.${served}`, async (_, input: unknown) => reply(201, { input }))
  const handler = idempotent(once, { account: () => 'acct_1', operation: order, validate })
  return async (key: string, body: unknown) => {
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' }
    const request = new Request('http://127.0.0.1/orders', {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    const response = await handler(request, {})
    const text = await response.text()
    return { status: response.status, text, json: JSON.parse(text), headers: response.headers }
  }
}

describe.each(Object.entries(SCHEMAS))('a schema of %s', (_, schema) => {
  test('refuses a body with the paths of what is wrong, claims no key, and lets the corrected body run', async () => {
    const send = serve(schema)
    const key = crypto.randomUUID()
    const refused = await send(key, {
      shop: 'one',
      items: [{ amount: 1 }, { amount: '4242424242424242' }],
    })
    expect([refused.status, refused.json.code]).toEqual([400, 'request_invalid'])
    expect(refused.json.issues.map(({ path }: { path: string }) => path)).toEqual(['/items/1/amount'])
    expect(refused.text).not.toContain('4242')
    const missing = await send(key, { items: [] })
    expect(new Set(missing.json.issues.map(({ path }: { path: string }) => path))).toEqual(
      new Set(['/shop', '/items']),
    )
    for (const { message } of missing.json.issues) expect(message).toMatch(/\w+/)
    const { rows } = await shop.observer.query('SELECT FROM onlyonce.records WHERE key = $1', [key])
    expect(rows).toEqual([])
    const corrected = { shop: ' one ', items: [{ amount: 1 }] }
    const first = await send(key, corrected)
    expect(first.status).toBe(201)
    // As the schema made it.
    expect(first.json.input).toEqual({ shop: 'one', items: [{ amount: 1 }] })
    const again = await send(key, corrected)
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([first.text, 'true'])
  })

  test('may ask elsewhere, and its own words are told', async () => {
    const send = serve(schema)
    const refused = await send(crypto.randomUUID(), { shop: 'closed', items: [{ amount: 1 }] })
    expect([refused.status, refused.json.issues[0].path]).toEqual([400, '/shop'])
  })

  test('refuses what is no object at all', async () => {
    const refused = await serve(schema)(crypto.randomUUID(), ['not', 'an', 'order'])
    expect([refused.status, refused.json.code]).toEqual([400, 'request_invalid'])
    expect(refused.json.issues.length).toBeGreaterThan(0)
  })
})
