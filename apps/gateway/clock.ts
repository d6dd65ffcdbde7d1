import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/**
 * The time of the gateway: that of the machine, and whatever somebody has put on top. The file keeps what was put on top: a gateway
 * that is started again does not go back in time.
 */
export class Clock {
  readonly #file: string
  #advancedMs: number
  readonly #sleepers = new Set<() => void>()

  constructor(file: string) {
    this.#file = file
    this.#advancedMs = readAdvanced(file)
  }

  now(): number {
    return Date.now() + this.#advancedMs
  }

  advance(ms: number): void {
    this.#advancedMs += ms
    writeFileSync(`${this.#file}.new`, `${this.#advancedMs}\n`, { mode: 0o600 })
    renameSync(`${this.#file}.new`, this.#file)
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
          // A longer timer than this fires at once.
          timer = setTimeout(wakeIfDue, Math.min(leftMs, 2_147_483_647))
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

function readAdvanced(file: string): number {
  try {
    return Number(readFileSync(file, 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0
    throw error
  }
}
