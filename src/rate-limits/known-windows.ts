import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import type { Rule } from './options.ts'
import type { Take } from './takes.ts'

interface Known {
  /** That of the store, or LOCAL where the store has told of none. */
  readonly window: string
  /** What the store has counted, as far as it has told. */
  used: number
  /** What passed without it. */
  blind: number
  readonly over: Deadline
}

const LOCAL = ''

/**
 * What this process knows of the windows of one rule, for a limiter that lets requests pass where the store cannot tell. Takes that the
 * store has not counted are counted here, on top of what it told last. So no process lets more than the points of a window pass by itself.
 * Without this, a client that keeps the store or the process from answering in time, by many requests, would have no limit.
 */
export class KnownWindows {
  readonly #rule: Rule
  /** By subject, those that began last at the end. */
  readonly #known = new Map<string, Known>()

  constructor(rule: Rule) {
    this.#rule = rule
  }

  /** The store has answered. */
  note(key: string, { left, resetMs, window }: Take): void {
    const used = this.#rule.points - left
    const known = this.#known.get(key)
    if (known?.window === window) {
      known.used = Math.max(known.used, used)
      return
    }
    // What passed before the store told of any window may be of the one that it tells of now.
    const blind = known !== undefined && known.window === LOCAL && !known.over.passed ? known.blind : 0
    this.#keep(key, { window, used, blind, over: new Deadline(resetMs) })
  }

  /** What a take comes to that the store does not count. Nothing is taken yet. */
  look(key: string, points: number): Take {
    const { used, blind, over } = this.#windowOf(key)
    const left = Math.max(0, this.#rule.points - used - blind)
    const granted = points <= left
    return { granted, left: granted ? left - points : left, resetMs: over.leftMs, window: LOCAL }
  }

  take(key: string, points: number): void {
    this.#windowOf(key).blind += points
  }

  forget(key: string): void {
    this.#known.delete(key)
  }

  #windowOf(key: string): Known {
    const known = this.#known.get(key)
    if (known !== undefined && !known.over.passed) return known
    return this.#keep(key, { window: LOCAL, used: 0, blind: 0, over: new Deadline(this.#rule.perMs) })
  }

  #keep(key: string, known: Known): Known {
    this.#known.delete(key)
    this.#known.set(key, known)
    const [oldest] = this.#known.keys()
    if (this.#known.size > LIMITS.limitKnownMax && oldest !== undefined) this.#known.delete(oldest)
    return known
  }
}
