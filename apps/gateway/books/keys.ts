import type { RefusalEntry } from '../wire.ts'
import type { Effect } from './index.ts'

/** What is remembered under an idempotency key. */
export type Remembered =
  | { readonly state: 'running' }
  | { readonly state: 'done'; readonly effect: Effect }
  | { readonly state: 'refused'; readonly refusal: RefusalEntry }

interface Kept {
  readonly at: number
  readonly fingerprint: string
  remembered: Remembered
}

export type Claim =
  | { readonly claim: 'claimed' }
  | { readonly claim: 'key_reused' }
  | { readonly claim: 'in_use' }
  | { readonly claim: 'replay'; readonly remembered: Exclude<Remembered, { state: 'running' }> }

/** Idempotency keys, as the first version of Stripe's API treats them: each is remembered for a time from its first use. */
export class Keys {
  readonly #lifetimeMs: number
  readonly #kept = new Map<string, Kept>()

  constructor(lifetimeMs: number) {
    this.#lifetimeMs = lifetimeMs
  }

  claim(key: string, fingerprint: string, now: number): Claim {
    this.#forget(now)
    const kept = this.#kept.get(key)
    if (kept === undefined) {
      this.#kept.set(key, { at: now, fingerprint, remembered: { state: 'running' } })
      return { claim: 'claimed' }
    }
    if (kept.fingerprint !== fingerprint) return { claim: 'key_reused' }
    const { remembered } = kept
    return remembered.state === 'running' ? { claim: 'in_use' } : { claim: 'replay', remembered }
  }

  /** Nothing was carried out: the key is as good as new. */
  release(key: string): void {
    this.#kept.delete(key)
  }

  remember(key: string, fingerprint: string, now: number, remembered: Remembered): void {
    const kept = this.#kept.get(key)
    if (kept?.remembered.state === 'running') {
      kept.remembered = remembered
      return
    }
    // Read from the journal, where a key that was forgotten may have come again.
    this.#kept.delete(key)
    this.#kept.set(key, { at: now, fingerprint, remembered })
  }

  /** The oldest are first. What still runs keeps its key. */
  #forget(now: number): void {
    for (const [key, { at, remembered }] of this.#kept) {
      if (now - at <= this.#lifetimeMs) return
      if (remembered.state !== 'running') this.#kept.delete(key)
    }
  }
}
