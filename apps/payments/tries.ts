import { LIMITS } from './limits.ts'

interface Write {
  readonly account: string
  readonly operation: string
  readonly key: string
}

const nameOf = ({ account, operation, key }: Write) => `${account} ${operation} ${key}`

/**
 * How to give back what a write has counted against its day, and a payment against its card and its account, by its key. A write is counted
 * before it runs, and may find that there is nothing to do: then it does not count. Kept in memory, for so many writes: what is
 * forgotten stays counted.
 */
export class Tries {
  readonly #give_back = new Map<string, () => Promise<unknown>>()

  /** The last one that was counted under a key takes the place of those before it. */
  counted(write: Write, giveBack: () => Promise<unknown>): void {
    const name = nameOf(write)
    this.#give_back.delete(name)
    this.#give_back.set(name, giveBack)
    const [oldest] = this.#give_back.keys()
    if (this.#give_back.size > LIMITS.tries_max && oldest !== undefined) this.#give_back.delete(oldest)
  }

  /** This write began nothing, and asked no processor. */
  async cameToNothing(write: Write): Promise<void> {
    const name = nameOf(write)
    const giveBack = this.#give_back.get(name)
    this.#give_back.delete(name)
    await giveBack?.()
  }
}
