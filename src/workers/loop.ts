import { setImmediate as nextTurn } from 'node:timers/promises'
import { acrossCopies } from '../core/copies.ts'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { backoffMs } from '../core/retry.ts'
import { codeOf, type Observers, reasonOf } from '../observe/index.ts'
import type { Worker } from '../onlyonce/worker.ts'
import { failureOf } from '../record/failure.ts'

/** Workers that a loop of this process has: a second loop would run them beside themselves. */
const taken = acrossCopies('running_workers', () => new WeakSet<Worker>())

/**
 * Runs one worker for as long as it is wanted: again at once while more is waiting, else after a while, and after errors
 * later and later, up to a bound. One batch at a time, because the next one is asked for when the last one is over.
 *
 * Its timers keep the process alive: one that does nothing but run workers has nothing else to live for.
 */
export class Loop {
  readonly #worker: Worker
  readonly #everyMs: number
  readonly #observers: Observers
  readonly #running: Promise<void>
  #stopped = false
  #wake: () => void = () => {}

  constructor(worker: Worker, everyMs: number, observers: Observers) {
    if (taken.has(worker)) {
      throw new OnlyonceError('option_invalid', {
        detail: `The worker ${worker.name} runs already. Start it once in a process.`,
      })
    }
    taken.add(worker)
    this.#worker = worker
    this.#everyMs = worker.everyMs ?? everyMs
    this.#observers = observers
    this.#running = this.#run().finally(() => taken.delete(worker))
  }

  /** Ends the pause, or lets the batch that runs finish. Resolves then, or when it was waited for long enough. */
  async stop(maxMs: number): Promise<void> {
    this.#stopped = true
    this.#wake()
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(maxMs, LIMITS.timerMaxMs))
    })
    await Promise.race([this.#running, enough])
    clearTimeout(timer)
  }

  async #run(): Promise<void> {
    // Not in the turn of the code that starts it: a worker that throws at once is heard as any other.
    await nextTurn()
    let failures = 0
    while (!this.#stopped) {
      try {
        const { more } = await this.#worker.runOnce()
        failures = 0
        // Others have their turn too, also beside a worker that never waits for anything.
        await (more ? nextTurn() : this.#pause(this.#everyMs * (0.9 + 0.2 * Math.random())))
      } catch (error) {
        if (error instanceof OnlyonceError && error.code === 'closed') return
        // What was cut off by the end of everything is no failure of the worker.
        if (this.#stopped) return
        this.#tell(error)
        failures += 1
        await this.#pause(backoffMs(failures, Math.random, AFTER_ERRORS))
      }
    }
  }

  #tell(error: unknown): void {
    const [code, reason, { message }] = [codeOf(error), reasonOf(error), failureOf(error)]
    this.#observers.emit({ signal: 'worker_failed', worker: this.#worker.name, code, reason, message })
  }

  #pause(waitMs: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.min(waitMs, LIMITS.timerMaxMs))
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

const AFTER_ERRORS = { minMs: LIMITS.backoffMinMs, maxMs: LIMITS.workerBackoffMaxMs }
