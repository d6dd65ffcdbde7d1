import { randomBytes } from 'node:crypto'
import type { Entry, Result } from './wire.ts'

/** What somebody asks for, whatever becomes of it. */
export type Order = Pick<Entry, 'kind' | 'key' | 'amount' | 'currency' | 'reference' | 'token'>

export type Decision =
  | { readonly decision: 'do'; readonly entry: Entry }
  | { readonly decision: 'replay'; readonly entry: Entry }
  /** The key belongs to another order. */
  | { readonly decision: 'mismatch' }

/** Who has paid what, by key and by id. Knows no file and no socket: the journal is read into it, and written from it. */
export class Ledger {
  readonly #byKey = new Map<string, Entry>()
  readonly #charges = new Map<string, Entry>()
  readonly #refunded = new Set<string>()
  readonly #options: { readonly dedupe: boolean; readonly keyLifetimeMs: number }

  constructor(
    options: { readonly dedupe: boolean; readonly keyLifetimeMs: number },
    entries: readonly Entry[],
  ) {
    this.#options = options
    for (const entry of entries) this.keep(entry)
  }

  charge(id: string): Entry | undefined {
    return this.#charges.get(id)
  }

  decide(order: Order, now: number, lagMs: number): Decision {
    const known = this.#options.dedupe ? this.byKey(order.key, now) : null
    if (known !== null) {
      return isSame(known, order) ? { decision: 'replay', entry: known } : { decision: 'mismatch' }
    }
    const id = `${order.kind === 'charge' ? 'ch' : 're'}_${randomBytes(12).toString('hex')}`
    const entry: Entry = {
      at: now,
      ...order,
      id,
      status: this.#isDeclined(order) ? 'declined' : 'succeeded',
      visible_at: now + lagMs,
    }
    return { decision: 'do', entry }
  }

  /** What is remembered under a key. */
  byKey(key: string, now: number): Entry | null {
    const entry = this.#byKey.get(key)
    if (entry === undefined || now - entry.at > this.#options.keyLifetimeMs) return null
    return entry
  }

  keep(entry: Entry): void {
    this.#byKey.set(entry.key, entry)
    if (entry.kind === 'charge') this.#charges.set(entry.id, entry)
    else if (entry.status === 'succeeded') this.#refunded.add(entry.reference)
  }

  #isDeclined({ kind, amount, reference, token }: Order): boolean {
    const cents = amount % 100
    if (kind === 'charge') return token === 'tok_declined' || cents === 2
    // What was never taken, or was given back, is not given back; nor is any amount that ends in 03.
    return (
      this.#charges.get(reference)?.status !== 'succeeded' || this.#refunded.has(reference) || cents === 3
    )
  }
}

export function resultOf({ kind, id, status, amount, currency, reference }: Entry): Result {
  return kind === 'charge'
    ? { object: kind, id, status, amount, currency, reference }
    : { object: kind, id, status, amount, currency, charge: reference }
}

function isSame(entry: Entry, order: Order): boolean {
  const { kind, amount, currency, reference, token } = order
  return (
    entry.kind === kind &&
    entry.amount === amount &&
    entry.currency === currency &&
    entry.reference === reference &&
    entry.token === token
  )
}
