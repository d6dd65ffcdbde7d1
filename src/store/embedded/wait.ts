import { setTimeout as sleep } from 'node:timers/promises'
import { EMBEDDED_LIMITS } from './limits.ts'

/**
 * Looks until `look` finds something, or until the time is over.
 *
 * The processes and files awaited here belong to a server that is not always our child, so there is no event
 * to wait for; looking costs some ten microseconds.
 *
 * @example
 * const gone = await waitFor(() => (processExists(pid) ? undefined : true), 5_000)
 */
export async function waitFor<T>(
  look: () => T | undefined | Promise<T | undefined>,
  time_max_ms: number,
): Promise<T | undefined> {
  const end_ms = performance.now() + time_max_ms
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() >= end_ms) return undefined
    await sleep(EMBEDDED_LIMITS.poll_ms)
  }
}
