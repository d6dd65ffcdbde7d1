/** What one batch came to. */
export interface Ran {
  /** How many pieces of work were done, or tried. */
  readonly done: number
  /** More is waiting: ask again at once. */
  readonly more: boolean
}

/**
 * A piece of background work. Any number of processes may run the same one at once: each takes what it works on
 * by a conditional update, so that nothing is done twice, and no worker waits for another.
 */
export interface Worker {
  readonly name: string
  /** How often it is asked while nothing waits for it; the loop has an answer of its own. */
  readonly everyMs?: number
  /** One bounded batch. Throws only where nothing could be asked at all, for example because the store is away. */
  runOnce(): Promise<Ran>
  /** Resolves when nothing that it began is under way any more, where a batch may leave something. */
  drain?(): Promise<void>
}
