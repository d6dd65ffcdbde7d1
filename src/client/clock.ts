/** All time of the client. Durations come from the monotonic clock: the wall clock of a phone may be set at any moment. */

export const now = (): number => performance.now()

/** Only for what another machine reads: a deadline, and a date in `Retry-After` beside no `Date`. */
export const wallNow = (): number => Date.now()

/** Resolves after a time, or as soon as the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    if (signal?.aborted) end()
    else signal?.addEventListener('abort', end)
  })
}
