/** A bar on stderr, where a person looks on, for what takes many batches. */
import type { Output } from './io.ts'

const WIDTH = 30

export class Progress {
  readonly #output: Output
  readonly #what: string
  readonly #total: number
  #done = 0

  /** `total` may be an estimate: a bar that is full does not end the work. */
  constructor(output: Output, what: string, total: number) {
    this.#output = output
    this.#what = what
    this.#total = total
    this.#draw()
  }

  get done(): number {
    return this.#done
  }

  add(count: number): void {
    this.#done += count
    this.#draw()
  }

  end(): void {
    if (this.#output.drawing) this.#output.redraw('')
  }

  #draw(): void {
    if (!this.#output.drawing) return
    const share = this.#total === 0 ? 1 : Math.min(1, this.#done / this.#total)
    const full = Math.round(share * WIDTH)
    const bar = `${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}`
    this.#output.redraw(`${this.#what} [${bar}] ${this.#done} of ${this.#total}`)
  }
}
