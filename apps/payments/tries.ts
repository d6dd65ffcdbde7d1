import { OnlyonceError } from 'onlyonce'
import { LIMITS } from './limits.ts'

interface Write {
  readonly account: string
  readonly operation: string
  readonly key: string
}

/** How to give back what a write has counted: against its day, and a payment against its card and its account. */
export interface Taken {
  readonly day: () => Promise<unknown>
  readonly card?: () => Promise<unknown>
}

const nameOf = ({ account, operation, key }: Write) => `${account} ${operation} ${key}`

/**
 * What writes have counted, by their keys. A write is counted before it runs, and may find that there is nothing to do: then it does not
 * count. Kept in memory, for so many writes: what is forgotten stays counted.
 */
export class Tries {
  readonly #taken = new Map<string, Taken>()

  /** A key counts once: what an earlier request with it has taken, and no attempt has begun with, is given back. */
  async counted(write: Write, taken: Taken): Promise<void> {
    const name = nameOf(write)
    const earlier = this.#taken.get(name)
    this.#taken.delete(name)
    this.#taken.set(name, taken)
    const [oldest] = this.#taken.keys()
    if (this.#taken.size > LIMITS.triesMax && oldest !== undefined) this.#taken.delete(oldest)
    if (earlier !== undefined) await giveBack(earlier)
  }

  /** This write began nothing, and asked no processor. */
  async cameToNothing(write: Write): Promise<void> {
    await this.begin(write).cameToNothing()
  }

  /** An attempt begins, and what was counted for it is its own. One that no request has asked for, such as a worker's, has counted nothing. */
  begin(write: Write): Attempt {
    const name = nameOf(write)
    const taken = this.#taken.get(name) ?? null
    this.#taken.delete(name)
    return new Attempt(taken)
  }
}

/** One attempt of a write, and what was counted for it. A write counts once for its day, and a card each time that it is tried. */
export class Attempt {
  readonly #taken: Taken | null
  #isNew = false
  #tried = false

  constructor(taken: Taken | null) {
    this.#taken = taken
  }

  /** Its first step runs, so the write is a new one. */
  begins(): void {
    this.#isNew = true
  }

  /** Its first step is done. A write that an earlier attempt began was counted by that one. */
  async hasBegun(): Promise<void> {
    if (!this.#isNew) await this.#taken?.day()
  }

  /** Makes a call that tries the card, unless it is proved that the call was not executed. */
  async tries<T>(call: () => Promise<T>): Promise<T> {
    this.#tried = true
    try {
      return await call()
    } catch (error) {
      if (error instanceof OnlyonceError && error.code === 'not_executed') this.#tried = false
      throw error
    }
  }

  /** No more calls are made. */
  async hasTried(): Promise<void> {
    if (!this.#tried) await this.#taken?.card?.()
  }

  async cameToNothing(): Promise<void> {
    if (this.#taken !== null) await giveBack(this.#taken)
  }
}

async function giveBack({ day, card }: Taken): Promise<void> {
  await Promise.all([day(), card?.()])
}
