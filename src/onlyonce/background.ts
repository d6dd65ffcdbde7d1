import { LIMITS } from '../core/limits.ts'
import { backoffMs, Deadline } from '../core/retry.ts'
import { codeOf, type Observers, reasonOf } from '../observe/index.ts'
import { failureOf } from '../record/failure.ts'

/** Something that a long-running process does beside its requests, in small batches. */
export interface Duty {
  readonly name: string
  readonly everyMs: number
  /** It is done beside workers of this process too. */
  readonly always?: boolean
  /** One bounded batch. `more`: there was more than fitted into it. */
  readonly run: () => Promise<{ readonly more: boolean }>
}

interface Planned {
  readonly duty: Duty
  due: Deadline
  failures: number
}

/**
 * The default background loop: one timer for all duties, which keeps no process alive. Each turn is one small batch, and a
 * batch that was full is followed by the next after a pause, so that the rate is bounded too. Where workers of this process
 * do the same, it leaves it to them.
 */
export class Background {
  readonly #observers: Observers
  readonly #yielded = new Set<readonly string[] | 'all'>()
  #planned: Planned[]
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<void> = Promise.resolve()
  #state: 'new' | 'started' | 'stopped' = 'new'

  constructor(duties: readonly Duty[], observers: Observers) {
    this.#observers = observers
    this.#planned = duties.map((duty) => ({ duty, due: new Deadline(0), failures: 0 }))
  }

  start(): void {
    if (this.#state !== 'new') return
    this.#state = 'started'
    // Not all processes of a fleet at once, and none at the moment in which it starts.
    for (const planned of this.#planned) planned.due = dueIn(planned.duty.everyMs)
    this.#plan()
  }

  async stop(): Promise<void> {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
    await this.#turn
  }

  /** Workers of this process have these duties now, or all of them. Gives back how to take that back. */
  yieldTo(names: readonly string[] | 'all'): () => void {
    const entry = names === 'all' ? names : [...names]
    this.#yielded.add(entry)
    return () => this.#yielded.delete(entry)
  }

  #plan(): void {
    if (this.#state !== 'started' || this.#planned.length === 0) return
    const nextMs = Math.min(...this.#planned.map(({ due }) => due.leftMs))
    const waitMs = Math.max(1, Math.min(nextMs, LIMITS.timerMaxMs))
    this.#timer = setTimeout(() => {
      this.#turn = this.#work().finally(() => this.#plan())
    }, waitMs)
    this.#timer.unref()
  }

  async #work(): Promise<void> {
    for (const planned of [...this.#planned]) {
      if (this.#state !== 'started' || !planned.due.passed) continue
      const inMs = this.#isYielded(planned.duty) ? planned.duty.everyMs : await this.#run(planned)
      planned.due = dueIn(inMs)
    }
  }

  /** Never throws: it runs in a timer. Gives back after how long it is worth another batch. */
  async #run(planned: Planned): Promise<number> {
    const { duty } = planned
    try {
      const { more } = await duty.run()
      planned.failures = 0
      return more ? LIMITS.backgroundAgainMs : duty.everyMs
    } catch (error) {
      if (this.#state !== 'started') return duty.everyMs
      planned.failures += 1
      const code = codeOf(error)
      if (code === INSUFFICIENT_PRIVILEGE) this.#planned = this.#planned.filter((other) => other !== planned)
      this.#tell(duty, code, error)
      const backoff = { minMs: duty.everyMs, maxMs: LIMITS.backgroundBackoffMaxMs }
      return backoffMs(planned.failures, Math.random, backoff)
    }
  }

  /** A role without the right is told once, and the duty is left to others. Everything else is tried again. */
  #tell({ name }: Duty, code: string, error: unknown): void {
    const [reason, { message }] = [reasonOf(error), failureOf(error)]
    this.#observers.emit({ signal: 'worker_failed', worker: `background.${name}`, code, reason, message })
    if (code !== INSUFFICIENT_PRIVILEGE || !this.#observers.none) return
    process.emitWarning(
      `onlyonce: the database role may not do what the background duty "${name}" needs (${message}). Grant it, or run workers with another role; set background: false to silence this.`,
    )
  }

  #isYielded({ name, always }: Duty): boolean {
    if (always === true) return false
    return [...this.#yielded].some((names) => names === 'all' || names.includes(name))
  }
}

/** PostgreSQL's code. */
const INSUFFICIENT_PRIVILEGE = '42501'

function dueIn(ms: number): Deadline {
  return new Deadline(ms * (0.5 + Math.random()))
}
