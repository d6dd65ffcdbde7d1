import { OnlyonceError } from '../../core/errors.ts'

interface Waiting {
  resolve: () => void
  /** Set when the time ran out, so that a transaction that frees a slot passes it by. */
  gone: boolean
}

/** A fair, bounded semaphore: so many may be in at once, so many may wait, and none for ever. */
export class Slots {
  readonly #waitingMax: number
  readonly #waitMaxMs: number
  #queue: Waiting[] = []
  #head = 0
  #free: number
  #waiting = 0
  /** Called whenever a place in the queue was given up. */
  onShorter: () => void = () => {}

  constructor(options: { size: number; waitingMax: number; waitMaxMs: number }) {
    this.#free = options.size
    this.#waitingMax = options.waitingMax
    this.#waitMaxMs = options.waitMaxMs
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Resolves when a slot is ours; throws `overloaded` or `pool_exhausted` when it is not going to be. */
  acquire(): Promise<void> | void {
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    if (this.waiting >= this.#waitingMax) throw new OnlyonceError('overloaded')
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.gone = true
        this.#waiting -= 1
        reject(new OnlyonceError('pool_exhausted'))
      }, this.#waitMaxMs)
      const waiting: Waiting = {
        gone: false,
        resolve: () => {
          clearTimeout(timer)
          resolve()
        },
      }
      this.#queue.push(waiting)
      this.#waiting += 1
    })
  }

  release(): void {
    while (this.#head < this.#queue.length) {
      const next = this.#queue[this.#head++]!
      if (this.#head > 1_024 && this.#head * 2 > this.#queue.length) this.#compact()
      if (next.gone) continue
      this.#waiting -= 1
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
