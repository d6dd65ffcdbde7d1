/** The time of the gateway: that of the machine, and whatever a test has put on top. */
export class Clock {
  #advanced_ms: number
  readonly #sleepers = new Set<() => void>()

  constructor(advanced_ms: number) {
    this.#advanced_ms = advanced_ms
  }

  now(): number {
    return Date.now() + this.#advanced_ms
  }

  advance(ms: number): void {
    this.#advanced_ms += ms
    for (const wakeIfDue of [...this.#sleepers]) wakeIfDue()
  }

  /** Until the clock has gone on so far, by itself or because it was advanced. */
  sleep(ms: number): Promise<void> {
    const due = this.now() + ms
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout
      const wakeIfDue = () => {
        clearTimeout(timer)
        const left_ms = due - this.now()
        if (left_ms > 0) {
          timer = setTimeout(wakeIfDue, left_ms)
          return
        }
        this.#sleepers.delete(wakeIfDue)
        resolve()
      }
      this.#sleepers.add(wakeIfDue)
      wakeIfDue()
    })
  }
}
