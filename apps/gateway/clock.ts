import { readFileSync, renameSync, writeFileSync } from 'node:fs'

/**
 * The time of the gateway: that of the machine, and whatever somebody has put on top. The file keeps what was put on top: a gateway
 * that is started again does not go back in time.
 */
export class Clock {
  readonly #file: string
  #advanced_ms: number
  readonly #sleepers = new Set<() => void>()

  constructor(file: string) {
    this.#file = file
    this.#advanced_ms = readAdvanced(file)
  }

  now(): number {
    return Date.now() + this.#advanced_ms
  }

  advance(ms: number): void {
    this.#advanced_ms += ms
    writeFileSync(`${this.#file}.new`, `${this.#advanced_ms}\n`, { mode: 0o600 })
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
        const left_ms = due - this.now()
        if (left_ms > 0) {
          // A longer timer than this fires at once.
          timer = setTimeout(wakeIfDue, Math.min(left_ms, 2_147_483_647))
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
