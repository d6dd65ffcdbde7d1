/** What is read page by page. */
import type { CallContext, Found } from 'onlyonce'
import type Stripe from 'stripe'
import type { Decline, Movement, Refunded, RefundOrder } from '../index.ts'
import { STRIPE_LIMITS } from './limits.ts'
import { KEY_ENTRY } from './metadata.ts'
import { moneyOf, refundOf } from './results.ts'

export type Read = <T>(signal: AbortSignal | undefined, work: (stripe: Stripe) => Promise<T>) => Promise<T>

/** What payment intents with the key of a call are called. */
export async function intentsOfKey(read: Read, key: string, signal: AbortSignal): Promise<readonly string[]> {
  const query = `metadata['${KEY_ENTRY}']:'${key.replace(/[\\']/g, '\\$&')}'`
  const page = await read(signal, (stripe) => stripe.paymentIntents.search({ query, limit: 10 }))
  // Search may tell more than what was asked for, and an older state than the present one.
  return page.data.filter(({ metadata }) => metadata?.[KEY_ENTRY] === key).map(({ id }) => id)
}

/** The refunds of one payment, newest first. */
export function refundsOf(
  read: Read,
  paymentIntent: string,
  signal: AbortSignal,
): AsyncGenerator<Stripe.Refund> {
  return pagesOf(STRIPE_LIMITS.refundPagesMax, (after) =>
    read(signal, (stripe) => stripe.refunds.list({ payment_intent: paymentIntent, ...after })),
  )
}

export async function findRefund(
  read: Read,
  order: RefundOrder,
  { key, signal }: CallContext,
): Promise<Found<Refunded | Decline>> {
  for await (const refund of refundsOf(read, order.gateway_id, signal)) {
    if (refund.metadata?.[KEY_ENTRY] === key) return refundOf(refund, order, key)
  }
  return { status: 'not_found' }
}

/** Payment intents first, then refunds; each newest first, as Stripe tells them. */
export async function* movementsOf(
  read: Read,
  { from, to, signal }: { readonly from: Date; readonly to: Date; readonly signal?: AbortSignal },
): AsyncGenerator<Movement> {
  // Stripe counts seconds. What was made in one belongs to the range that its beginning is in.
  const created = { gte: Math.ceil(from.getTime() / 1_000), lt: Math.ceil(to.getTime() / 1_000) }
  const intents = pagesOf(STRIPE_LIMITS.movementPagesMax, (after) =>
    read(signal, (stripe) => stripe.paymentIntents.list({ created, ...after })),
  )
  for await (const intent of intents) {
    yield {
      kind: 'payment',
      gateway_id: intent.id,
      account: intent.metadata?.account ?? null,
      reference: intent.metadata?.payment ?? null,
      ...moneyOf(intent),
      moved: intent.amount_received,
      at: timeOf(intent),
    }
  }
  const refunds = pagesOf(STRIPE_LIMITS.movementPagesMax, (after) =>
    read(signal, (stripe) => stripe.refunds.list({ created, ...after })),
  )
  for await (const refund of refunds) {
    yield {
      kind: 'refund',
      gateway_id: refund.id,
      account: refund.metadata?.account ?? null,
      reference: refund.metadata?.refund ?? null,
      ...moneyOf(refund),
      moved: refund.status === 'succeeded' ? refund.amount : 0,
      at: timeOf(refund),
    }
  }
}

interface After {
  readonly limit: number
  readonly starting_after?: string
}

/** One request a page: the SDK's own paging would leave the sender's bounds between two of them. */
async function* pagesOf<T extends { readonly id: string }>(
  pagesMax: number,
  load: (after: After) => Promise<{ readonly data: T[]; readonly has_more: boolean }>,
): AsyncGenerator<T> {
  let after: After = { limit: STRIPE_LIMITS.pageLength }
  for (let page = 0; page < pagesMax; page += 1) {
    const { data, has_more: hasMore } = await load(after)
    yield* data
    const last = data.at(-1)
    if (!hasMore || last === undefined) return
    after = { limit: STRIPE_LIMITS.pageLength, starting_after: last.id }
  }
  throw new Error(`Stripe tells more than ${pagesMax} pages.`)
}

function timeOf({ created }: { readonly created: number }): string {
  return new Date(created * 1_000).toISOString()
}
