import { LIMITS } from './limits.ts'

/** Whose write it is, and under which key. */
interface Write {
  readonly account: string
  readonly key: string
}

const nameOf = ({ account, key }: Write) => `${account} ${key}`

/**
 * Points of limits that requests under way have taken. A request may come to nothing and give its points back, so another request that
 * finds none left is told to come back soon, and not when the window ends. It is a hint and decides nothing: each process knows of its own
 * requests, the first end of two requests with one key is the end of both, and what is held for long counts as taken for good.
 */
export class Provisional {
  readonly #now: () => number
  /** Until when each write may give back what it took, by the limit and its subject. */
  readonly #held = new Map<string, Map<string, number>>()
  /** What each write has taken of, those that began last at the end. */
  readonly #writes = new Map<string, Set<string>>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The write has taken a point of this subject. */
  hold(write: Write, subject: string): void {
    const name = nameOf(write)
    const held = this.#held.get(subject) ?? new Map<string, number>()
    held.set(name, this.#now() + LIMITS.provisionalMaxMs)
    this.#held.set(subject, held)
    const subjects = this.#writes.get(name) ?? new Set<string>()
    this.#writes.delete(name)
    this.#writes.set(name, subjects.add(subject))
    const [oldest] = this.#writes.keys()
    if (this.#writes.size > LIMITS.triesMax && oldest !== undefined) this.#forget(oldest)
  }

  /** The request is answered: what it has not given back is taken. */
  over(write: Write): void {
    this.#forget(nameOf(write))
  }

  /** Whether a point of this subject may come back in a moment. */
  mayComeBack(subject: string): boolean {
    const nowMs = this.#now()
    return [...(this.#held.get(subject)?.values() ?? [])].some((untilMs) => untilMs > nowMs)
  }

  #forget(name: string): void {
    for (const subject of this.#writes.get(name) ?? []) {
      const held = this.#held.get(subject)
      held?.delete(name)
      if (held?.size === 0) this.#held.delete(subject)
    }
    this.#writes.delete(name)
  }
}
