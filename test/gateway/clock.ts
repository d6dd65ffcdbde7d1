/** The time of the gateway: that of the machine, and whatever a test has put on top. */
export class Clock {
  #advancedMs: number
  readonly #sleepers = new Set<() => void>()

  constructor(advancedMs: number) {
    this.#advancedMs = advancedMs
  }

  now(): number {
    return Date.now() + this.#advancedMs
  }

  advance(ms: number): void {
    this.#advancedMs += ms
    for (const wakeIfDue of [...this.#sleepers]) wakeIfDue()
  }

  /** Until the clock has gone on so far, by itself or because it was advanced. */
  sleep(ms: number): Promise<void> {
    const due = this.now() + ms
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout
      const wakeIfDue = () => {
        clearTimeout(timer)
        const leftMs = due - this.now()
        if (leftMs > 0) {
          timer = setTimeout(wakeIfDue, leftMs)
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
