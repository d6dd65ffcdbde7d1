import { LIMITS } from './limits.ts'

/**
 * How to give back what a payment has counted against its card and its account, by its key. A payment is counted before it runs, and its
 * operation may find that there is nothing to try: then it does not count. Kept in memory, for so many payments: what is forgotten
 * stays counted.
 */
export class Tries {
  readonly #give_back = new Map<string, () => Promise<unknown>>()

  /** The last one that was counted under a key takes the place of those before it. */
  counted(account: string, key: string, giveBack: () => Promise<unknown>): void {
    const name = `${account} ${key}`
    this.#give_back.delete(name)
    this.#give_back.set(name, giveBack)
    const [oldest] = this.#give_back.keys()
    if (this.#give_back.size > LIMITS.tries_max && oldest !== undefined) this.#give_back.delete(oldest)
  }

  /** No processor was asked for this payment. */
  async cameToNothing({ account, key }: { readonly account: string; readonly key: string }): Promise<void> {
    const name = `${account} ${key}`
    const giveBack = this.#give_back.get(name)
    this.#give_back.delete(name)
    await giveBack?.()
  }
}
