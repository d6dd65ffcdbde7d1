import { OnlyonceError } from '../../errors.ts'

interface Waiting {
  resolve: () => void
  /** Set when the time ran out, so that whoever frees a slot passes it by. */
  gone: boolean
}

/** A fair, bounded semaphore: so many may be in at once, so many may wait, and none for ever. */
export class Slots {
  readonly #waiting_max: number
  readonly #wait_max_ms: number
  #queue: Waiting[] = []
  #head = 0
  #free: number
  /** Called whenever a place in the queue was given up. */
  onShorter: () => void = () => {}

  constructor(options: { size: number; waiting_max: number; wait_max_ms: number }) {
    this.#free = options.size
    this.#waiting_max = options.waiting_max
    this.#wait_max_ms = options.wait_max_ms
  }

  /** How many wait; those whose time ran out are counted until their turn comes. */
  get waiting(): number {
    return this.#queue.length - this.#head
  }

  /** Resolves when a slot is ours; throws `overloaded` or `pool_exhausted` when it is not going to be. */
  acquire(): Promise<void> | void {
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    if (this.waiting >= this.#waiting_max) throw new OnlyonceError('overloaded')
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.gone = true
        reject(new OnlyonceError('pool_exhausted'))
      }, this.#wait_max_ms)
      const waiting: Waiting = {
        gone: false,
        resolve: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      this.#queue.push(waiting)
    })
  }

  release(): void {
    while (this.#head < this.#queue.length) {
      const next = this.#queue[this.#head++]!
      if (this.#head > 1_024 && this.#head * 2 > this.#queue.length) this.#compact()
      if (next.gone) continue
      next.resolve()
      this.onShorter()
      return
    }
    this.#free += 1
    this.onShorter()
  }

  #compact(): void {
    this.#queue = this.#queue.slice(this.#head)
    this.#head = 0
  }
}
