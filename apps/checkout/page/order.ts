/** What is bought, and what the page has seen of its payment. It is kept over a reload, as a shop keeps its cart. */
import type { FaultName } from './faults.ts'

export const ITEMS = [
  { id: 'tea', name: 'Darjeeling', about: 'first flush, 100 g', cents: 1_450 },
  { id: 'pot', name: 'Glass teapot', about: '0.8 l, with strainer', cents: 3_900 },
] as const
export type ItemId = (typeof ITEMS)[number]['id']

/** By the names of the sandbox processor, which are those of Stripe. */
export const METHODS = {
  visa: 'Visa •••• 4242, pays',
  mastercard: 'Mastercard •••• 4444, pays',
  chargeDeclined: 'Visa •••• 0002, is declined',
} as const
export type MethodId = keyof typeof METHODS

/** How the page sends: with the client of onlyonce, or as many pages do. */
export const WAYS = {
  onlyonce: 'With onlyonce',
  fresh: 'With a new key for each try, the usual mistake',
} as const
export type Way = keyof typeof WAYS

export interface AttemptEntry {
  readonly kind: 'attempt'
  readonly number: number
  readonly key: string
  readonly beginMs: number
  /** Null while it is under way. */
  endMs: number | null
  status: number | null
  code: string | null
  replayed: boolean
}

/** In the order in which it happened. Times are counted from the first tap. */
export type Entry = AttemptEntry | { readonly kind: 'note'; readonly text: string; readonly atMs: number }

export interface Order {
  readonly id: string
  readonly counts: Record<ItemId, number>
  method: MethodId
  fault: FaultName
  way: Way
  /** When Pay was first pressed; null before. */
  begunAt: number | null
  /** Whether a payment is under way. After a load it says that the page was reloaded in the middle. */
  paying: boolean
  /** How it ended, in the page's words; null before. */
  ended: 'paid' | 'declined' | 'unknown' | 'failed' | null
  readonly entries: Entry[]
}

const KEPT = 'checkout.order'

export function newOrder(before?: Order): Order {
  return {
    id: `order-${Math.floor(Date.now() / 100)
      .toString(36)
      .slice(-6)}`,
    counts: { tea: 2, pot: 1 },
    method: before?.method ?? 'visa',
    fault: before?.fault ?? 'lost_answer',
    way: before?.way ?? 'onlyonce',
    begunAt: null,
    paying: false,
    ended: null,
    entries: [],
  }
}

export function loadOrder(): Order {
  try {
    const text = sessionStorage.getItem(KEPT)
    return text === null ? newOrder() : (JSON.parse(text) as Order)
  } catch {
    return newOrder()
  }
}

export const keepOrder = (order: Order) => sessionStorage.setItem(KEPT, JSON.stringify(order))

export const totalOf = ({ counts }: Order) =>
  ITEMS.reduce((sum, { id, cents }) => sum + counts[id] * cents, 0)

/** What the server is asked for. The same order gives the same bytes. */
export const payloadOf = (order: Order) => ({
  amount: totalOf(order),
  currency: 'EUR',
  payment_method: `pm_card_${order.method}`,
  reference: order.id,
})

/** The keys that were sent, in order, each once. */
export const keysOf = ({ entries }: Order) => [
  ...new Set(entries.flatMap((entry) => (entry.kind === 'attempt' ? [entry.key] : []))),
]
