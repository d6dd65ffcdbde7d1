import { describe, expect, it } from 'vitest'
import { failureOf, failuresOf, HELD_TEA, newKey, openGateway, TEA } from './under-test.ts'

const LAG_MS = 60_000
const { gateway, stripe } = await openGateway({ searchLagMs: LAG_MS })

describe('lists', () => {
  it('go through all payments, newest first, page by page', async () => {
    const made: string[] = []
    for (let i = 0; i < 25; i += 1) made.unshift((await stripe.paymentIntents.create(TEA)).id)
    const page = await stripe.paymentIntents.list({ limit: 10 })
    expect(page).toMatchObject({ object: 'list', has_more: true })
    expect(page.data.map(({ id }) => id)).toEqual(made.slice(0, 10))
    const startingAfter = page.data.at(-1)!.id
    const next = await stripe.paymentIntents.list({ limit: 15, starting_after: startingAfter })
    expect(next.data.map(({ id }) => id)).toEqual(made.slice(10))
    expect(next.has_more).toBe(false)
    // The SDK's own paging.
    const all = await stripe.paymentIntents.list({ limit: 7 }).autoPagingToArray({ limit: 100 })
    expect(all.map(({ id }) => id)).toEqual(made)
  })

  it('tell what was made in a time', async () => {
    await gateway.advance(10_000)
    const { id, created } = await stripe.paymentIntents.create(TEA)
    const ids = async (range: { gte?: number; lt?: number; gt?: number; lte?: number } | number) => {
      const { data } = await stripe.paymentIntents.list({ created: range, limit: 100 })
      return data.map((intent) => intent.id)
    }
    expect(await ids({ gte: created, lt: created + 1 })).toEqual([id])
    expect(await ids({ gt: created - 1, lte: created })).toEqual([id])
    expect(await ids(created)).toEqual([id])
    expect(await ids({ gt: created })).toEqual([])
    expect(await ids({ lt: created })).toHaveLength(25)
  })

  it('tell the refunds of a payment, or of all', async () => {
    const payments = [await stripe.paymentIntents.create(TEA), await stripe.paymentIntents.create(TEA)]
    const made: string[] = []
    for (const amount of [100, 200, 300]) {
      for (const { id } of payments) {
        made.unshift((await stripe.refunds.create({ payment_intent: id, amount })).id)
      }
    }
    const of = await stripe.refunds.list({ payment_intent: payments[0]!.id, limit: 2 })
    expect(of.data.map(({ amount }) => amount)).toEqual([300, 200])
    expect(of.has_more).toBe(true)
    const all = await stripe.refunds.list({ limit: 4 }).autoPagingToArray({ limit: 100 })
    expect(all.map(({ id }) => id)).toEqual(made)
    const { created } = all[0]!
    expect((await stripe.refunds.list({ created: { gt: created } })).data).toEqual([])
  })

  it('tell all events, each as it was', async () => {
    const key = newKey()
    const held = await stripe.paymentIntents.create(HELD_TEA, { idempotencyKey: key })
    await stripe.paymentIntents.capture(held.id, { amount_to_capture: 1000, final_capture: false })
    await stripe.paymentIntents.capture(held.id)
    await stripe.refunds.create({ payment_intent: held.id })
    const all = await stripe.events.list({ limit: 3 }).autoPagingToArray({ limit: 1000 })
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
    expect(all.slice(0, 7).map(({ type }) => type)).toEqual([
      'charge.refunded',
      'refund.created',
      'payment_intent.succeeded',
      'charge.captured',
      'payment_intent.amount_capturable_updated',
      'charge.captured',
      'payment_intent.amount_capturable_updated',
    ])
    const first = all[6]!
    expect(first.data.object).toEqual(held)
    expect(first.request).toEqual({ id: held.lastResponse.requestId, idempotency_key: key })
    expect(await stripe.events.retrieve(first.id)).toEqual(first)
    const { data } = await stripe.events.list({ type: 'refund.created', limit: 1 })
    expect(data[0]!.type).toBe('refund.created')
  })

  it('refuse what they cannot answer', async () => {
    const wrong = [
      stripe.paymentIntents.list({ limit: 101 }),
      stripe.paymentIntents.list({ starting_after: 'pi_none' }),
      stripe.refunds.list({ starting_after: 're_none' }),
      stripe.events.list({ starting_after: 'evt_none' }),
      stripe.paymentIntents.search({ query: 'amount>5' }),
      stripe.paymentIntents.search({ query: "status:'succeeded'" }),
    ]
    for (const failure of await failuresOf(wrong)) expect(failure).toMatchObject({ statusCode: 400 })
    expect(await failureOf(stripe.events.retrieve('evt_none'))).toMatchObject({ statusCode: 404 })
  })
})

describe('search', () => {
  const search = async (query: string) => {
    const found = await stripe.paymentIntents.search({ query, limit: 100 })
    return found.data.map(({ id }) => id)
  }

  it('does not see what is younger than its lag, which a look at the thing itself does', async () => {
    const metadata = { payment: newKey() }
    const query = `metadata['payment']:'${metadata.payment}'`
    const { id } = await stripe.paymentIntents.create({ ...HELD_TEA, metadata })
    expect(await search(query)).toEqual([])
    expect((await stripe.paymentIntents.retrieve(id)).id).toBe(id)
    await gateway.advance(LAG_MS)
    expect(await search(query)).toEqual([id])
    // What changed since is not seen either.
    await stripe.paymentIntents.capture(id, { metadata: { capture: metadata.payment } })
    const { data } = await stripe.paymentIntents.search({ query })
    expect(data[0]).toMatchObject({ status: 'requires_capture', amount_received: 0 })
    expect(await search(`metadata['capture']:'${metadata.payment}'`)).toEqual([])
    await gateway.advance(LAG_MS)
    expect(await search(`metadata['capture']:'${metadata.payment}' AND status:'succeeded'`)).toEqual([id])
  })

  it('finds by several names, with quotes in them, page by page', async () => {
    const metadata = { "it's": 'a "b"', batch: '7' }
    const ids: string[] = []
    for (let i = 0; i < 5; i += 1) ids.unshift((await stripe.paymentIntents.create({ ...TEA, metadata })).id)
    await gateway.advance(LAG_MS)
    expect(await search(`metadata["it's"]:'a "b"' AND metadata['batch']:'7'`)).toEqual(ids)
    expect(await search(`metadata['it\\'s']:"a \\"b\\"" AND metadata['batch']:'8'`)).toEqual([])
    const query = "metadata['batch']:'7'"
    const all = await stripe.paymentIntents.search({ query, limit: 2 }).autoPagingToArray({ limit: 100 })
    expect(all.map(({ id }) => id)).toEqual(ids)
  })

  it('sees declines, and can be told to lag more, as can every other lookup', async () => {
    const metadata = { payment: newKey() }
    const query = `metadata['payment']:'${metadata.payment}'`
    const paymentMethod = 'pm_card_chargeDeclined'
    await failureOf(stripe.paymentIntents.create({ ...TEA, payment_method: paymentMethod, metadata }))
    await gateway.fault({ fault: 'lag', ms: 2 * LAG_MS })
    const { id } = await stripe.paymentIntents.create({ ...TEA, metadata })
    expect(await failureOf(stripe.paymentIntents.retrieve(id))).toMatchObject({ statusCode: 404 })
    expect((await stripe.paymentIntents.list({ limit: 1 })).data[0]!.id).not.toBe(id)
    await gateway.advance(LAG_MS)
    expect(await search(query)).toHaveLength(1)
    await gateway.advance(LAG_MS)
    expect(await search(query)).toHaveLength(2)
    expect((await stripe.paymentIntents.retrieve(id)).id).toBe(id)
  })
})

it('an authorization runs out after seven days', async () => {
  const { id } = await stripe.paymentIntents.create(HELD_TEA)
  const { id: taken } = await stripe.paymentIntents.create(HELD_TEA)
  await stripe.paymentIntents.capture(taken)
  await gateway.advance(7 * 24 * 60 * 60 * 1_000 - 60_000)
  expect((await stripe.paymentIntents.retrieve(id)).status).toBe('requires_capture')
  await gateway.advance(60_000)
  const gone = { status: 'canceled', cancellation_reason: 'automatic', amount_capturable: 0 }
  expect(await stripe.paymentIntents.retrieve(id)).toMatchObject(gone)
  expect((await stripe.paymentIntents.retrieve(taken)).status).toBe('succeeded')
  expect(await failureOf(stripe.paymentIntents.capture(id))).toMatchObject({
    code: 'payment_intent_unexpected_state',
  })
  expect((await gateway.journal()).at(-1)).toMatchObject({
    kind: 'void',
    key: null,
    payment_intent: id,
    amount: 4200,
  })
  const { data } = await stripe.events.list({ limit: 1 })
  expect(data[0]).toMatchObject({ type: 'payment_intent.canceled', request: { idempotency_key: null } })
})
