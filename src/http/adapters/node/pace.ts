import type { ServerResponse } from 'node:http'

/**
 * Holds a writer up for a turn of the event loop now and then, where no client does. A source that is never held up, and makes its
 * data at once, would keep everything else in the process from running, and also the timer that ends its own time.
 */
export class Pace {
  readonly #response: ServerResponse
  #sizeBytes = 0
  #isWaiting = false

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Whether the writer may go on at once: what `write` returns. */
  took(sizeBytes: number): boolean {
    this.#sizeBytes += sizeBytes
    if (this.#sizeBytes < TURN_MAX_BYTES) return true
    this.goOnSoon()
    return false
  }

  goOnSoon(): void {
    if (this.#isWaiting) return
    this.#isWaiting = true
    setImmediate(() => {
      this.#isWaiting = false
      this.#sizeBytes = 0
      this.#response.emit('drain')
    })
  }
}

const TURN_MAX_BYTES = 1_048_576
