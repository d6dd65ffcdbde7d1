import type { ServerResponse } from 'node:http'

/**
 * Holds a writer up for a turn of the event loop now and then, where no client does. A source that is never held up, and makes its
 * data at once, would keep everything else in the process from running, and also the timer that ends its own time.
 */
export class Pace {
  readonly #response: ServerResponse
  #size_bytes = 0
  #is_waiting = false

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Whether the writer may go on at once: what `write` returns. */
  took(size_bytes: number): boolean {
    this.#size_bytes += size_bytes
    if (this.#size_bytes < TURN_MAX_BYTES) return true
    this.goOnSoon()
    return false
  }

  goOnSoon(): void {
    if (this.#is_waiting) return
    this.#is_waiting = true
    setImmediate(() => {
      this.#is_waiting = false
      this.#size_bytes = 0
      this.#response.emit('drain')
    })
  }
}

const TURN_MAX_BYTES = 1_048_576
