import { setTimeout as sleep } from 'node:timers/promises'
import { isDatabaseAway, isRefused } from './away.ts'

/** The database could not be reached for as long as a start may wait. One line says so. */
export class NotReached extends Error {
  constructor(where: string, error: unknown, waitedMs: number) {
    const after = waitedMs === 0 ? 'at once' : `after ${Math.round(waitedMs / 1_000)} s`
    super(`PostgreSQL at ${where} cannot be reached (${reasonOf(error)}). The start gave up ${after}.`)
    this.name = 'NotReached'
  }
}

/** The process was told to end while it waited. */
export class Interrupted extends Error {
  constructor() {
    super('The start was ended by a signal.')
    this.name = 'Interrupted'
  }
}

export interface ReachOptions {
  /** The address of the database; its password is not shown. */
  readonly url: string
  /** How long a start waits for the database, over all that it does there. Zero: not at all. */
  readonly waitMaxMs: number
  /** Ends the wait. */
  readonly signal?: AbortSignal
  /** Told once, in one line. */
  readonly tell: (line: string) => void
}

const PAUSE_MIN_MS = 100
const PAUSE_MAX_MS = 5_000

/**
 * Runs parts of a start that need the database, again and again while it is away. The pauses grow, and have jitter: all processes of a
 * service may be waiting for the same server.
 */
export class Reach {
  readonly #options: ReachOptions
  readonly #begunMs = performance.now()
  #told = false

  constructor(options: ReachOptions) {
    this.#options = options
  }

  async run<T>(part: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      this.#refuseWhenOver()
      try {
        return await part()
      } catch (error) {
        if (!isDatabaseAway(error) || isRefused(error)) throw error
        await this.#pause(tries, error)
      }
    }
  }

  async #pause(tries: number, error: unknown): Promise<void> {
    const { url, waitMaxMs, signal, tell } = this.#options
    const where = placeOf(url)
    const ceilingMs = Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** Math.min(tries, 10))
    const pauseMs = ceilingMs * (0.5 + Math.random() / 2)
    const waitedMs = performance.now() - this.#begunMs
    if (waitedMs + pauseMs > waitMaxMs) throw new NotReached(where, error, waitMaxMs)
    if (!this.#told) {
      tell(
        `PostgreSQL at ${where} cannot be reached (${reasonOf(error)}). Waiting for it; --wait 0 gives up at once.`,
      )
    }
    this.#told = true
    await sleep(pauseMs, undefined, { ...(signal && { signal }) }).catch(() => {})
  }

  #refuseWhenOver(): void {
    if (this.#options.signal?.aborted) throw new Interrupted()
  }
}

/** Host and port, and nothing else of an address that may hold a password. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return 'an address that cannot be read'
  const { hostname, port, searchParams } = new URL(url)
  return `${hostname || searchParams.get('host') || 'localhost'}:${port || '5432'}`
}

/** The code of the innermost error: ECONNREFUSED, or five characters of PostgreSQL's. */
function reasonOf(error: unknown): string {
  let found = 'no answer in time'
  let cause = error
  for (let depth = 0; depth < 8 && cause instanceof Error; depth += 1) {
    const { code } = cause as { readonly code?: unknown }
    if (typeof code === 'string') found = code
    cause = cause instanceof AggregateError ? cause.errors[0] : cause.cause
  }
  return found
}
