import type { JournalEntry, MovementKind } from '../wire.ts'
import { CARDS, type CardDecline } from './cards.ts'

/** How long money is held for a manual capture, as Stripe does for most cards. */
export const AUTHORIZATION_MS = 7 * 24 * 60 * 60 * 1_000

/** A payment intent at one moment. A change makes a new one: whoever holds the old one sees what was true then. */
export interface Intent {
  readonly id: string
  /** Its place in the order in which intents were made. */
  readonly place: number
  readonly charge: string
  readonly created: number
  readonly amount: number
  readonly currency: string
  readonly captureMethod: 'automatic' | 'manual'
  readonly paymentMethod: string
  readonly description: string | null
  readonly metadata: Readonly<Record<string, string>>
  readonly status: 'succeeded' | 'requires_capture' | 'canceled' | 'requires_payment_method'
  readonly capturable: number
  readonly received: number
  readonly refunded: number
  readonly canceledAt: number | null
  readonly cancellationReason: string | null
  readonly decline: CardDecline | null
  /** When it became so, and from when on lookups see it. */
  readonly since: number
  readonly visibleAt: number
  readonly previous: Intent | null
}

export interface Refund {
  readonly id: string
  readonly place: number
  readonly created: number
  readonly visibleAt: number
  readonly amount: number
  readonly reason: string | null
  readonly metadata: Readonly<Record<string, string>>
  /** As it was once this was given back. */
  readonly intent: Intent
}

/** What a line of the journal has made. */
export interface Effect {
  readonly entry: JournalEntry
  readonly intent: Intent
  readonly refund: Refund | null
}

/** Who has paid what. Knows no file and no socket: the journal is read into it, line by line, and so is what happens later. */
export class Books {
  /** In the order in which they were made, each as it is now. */
  readonly intents: Intent[] = []
  readonly refunds: Refund[] = []
  readonly effects: Effect[] = []
  readonly movements: Record<MovementKind, number> = {
    authorization: 0,
    capture: 0,
    void: 0,
    refund: 0,
    decline: 0,
  }
  readonly #places = new Map<string, number>()
  readonly #refundPlaces = new Map<string, number>()
  readonly #effectPlaces = new Map<string, number>()
  /** Lists, not sets: nearly all have one member, and there are as many of them as payments. */
  readonly #byMetadata = new Map<string, number[]>()
  /** Places of intents whose money may still be held, in the order in which they run out. */
  #held: number[] = []

  intent(id: string): Intent | undefined {
    const place = this.#places.get(id)
    return place === undefined ? undefined : this.intents[place]
  }

  refund(id: string): Refund | undefined {
    const place = this.#refundPlaces.get(id)
    return place === undefined ? undefined : this.refunds[place]
  }

  /** The place of the movement that an id was made for. */
  effectPlace(nonce: string): number | undefined {
    return this.#effectPlaces.get(nonce)
  }

  /** Intents that have or had this metadata, as they are now. */
  withMetadata(name: string, value: string): Intent[] {
    const places = this.#byMetadata.get(`${name}=${value}`) ?? []
    return [...new Set(places)].map((place) => this.intents[place]!)
  }

  /** The next intent whose hold has run out. */
  expired(now: number): Intent | null {
    while (this.#held.length > 0) {
      const intent = this.intents[this.#held[0]!]!
      if (intent.status === 'requires_capture') {
        return intent.created + AUTHORIZATION_MS <= now ? intent : null
      }
      this.#held.shift()
    }
    return null
  }

  apply(entry: JournalEntry): Effect {
    const old = this.intent(entry.payment_intent)
    const intent = old === undefined ? this.#open(entry) : changed(old, entry)
    this.#places.set(intent.id, intent.place)
    this.intents[intent.place] = intent
    if (intent.metadata !== old?.metadata) this.#index(intent)
    const refund = entry.kind === 'refund' ? this.#keepRefund(entry, intent) : null
    const effect = { entry, intent, refund }
    this.#effectPlaces.set(entry.nonce, this.effects.length)
    this.effects.push(effect)
    this.movements[entry.kind] += 1
    return effect
  }

  #open(entry: JournalEntry): Intent {
    const place = this.intents.length
    const { kind, amount } = entry
    if (kind === 'authorization') this.#held.push(place)
    return {
      id: entry.payment_intent,
      place,
      charge: `ch_${entry.nonce}`,
      created: entry.at,
      amount,
      currency: entry.currency,
      captureMethod: entry.capture_method ?? 'automatic',
      paymentMethod: entry.payment_method ?? '',
      description: entry.description ?? null,
      metadata: merged({}, entry.metadata),
      status:
        kind === 'decline'
          ? 'requires_payment_method'
          : kind === 'authorization'
            ? 'requires_capture'
            : 'succeeded',
      capturable: kind === 'authorization' ? amount : 0,
      received: kind === 'capture' ? amount : 0,
      refunded: 0,
      canceledAt: null,
      cancellationReason: null,
      decline: kind === 'decline' ? CARDS.get(entry.payment_method ?? '')!.decline : null,
      since: entry.at,
      visibleAt: entry.visible_at ?? entry.at,
      previous: null,
    }
  }

  #keepRefund(entry: JournalEntry, intent: Intent): Refund {
    const refund = {
      id: entry.refund!,
      place: this.refunds.length,
      created: entry.at,
      visibleAt: entry.visible_at ?? entry.at,
      amount: entry.amount,
      reason: entry.reason ?? null,
      metadata: merged({}, entry.metadata),
      intent,
    }
    this.#refundPlaces.set(refund.id, refund.place)
    this.refunds.push(refund)
    return refund
  }

  #index({ metadata, place }: Intent): void {
    for (const [name, value] of Object.entries(metadata)) {
      const term = `${name}=${value}`
      const places = this.#byMetadata.get(term)
      if (places === undefined) this.#byMetadata.set(term, [place])
      else if (places.at(-1) !== place) places.push(place)
    }
  }
}

function changed(old: Intent, entry: JournalEntry): Intent {
  const { kind, at, amount } = entry
  const moved = { since: at, visibleAt: entry.visible_at ?? at, previous: old }
  switch (kind) {
    case 'capture': {
      const capturable = entry.final ? 0 : old.capturable - amount
      return {
        ...old,
        ...moved,
        received: old.received + amount,
        capturable,
        status: capturable === 0 ? 'succeeded' : 'requires_capture',
        metadata: merged(old.metadata, entry.metadata),
      }
    }
    case 'void': {
      const reason = entry.reason ?? null
      return {
        ...old,
        ...moved,
        capturable: 0,
        status: 'canceled',
        canceledAt: at,
        cancellationReason: reason,
      }
    }
    case 'refund':
      return { ...old, ...moved, refunded: old.refunded + amount }
    case 'authorization':
    case 'decline':
      throw new Error(`The journal opens ${old.id} twice.`)
    default:
      return kind satisfies never
  }
}

function merged(old: Intent['metadata'], more: Intent['metadata']): Intent['metadata'] {
  const members = Object.entries(more)
  if (members.length === 0) return old
  const all = new Map([...Object.entries(old), ...members])
  return Object.fromEntries([...all].filter(([, value]) => value !== ''))
}
