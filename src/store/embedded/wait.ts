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
  timeMaxMs: number,
): Promise<T | undefined> {
  const endMs = performance.now() + timeMaxMs
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() >= endMs) return undefined
    await sleep(EMBEDDED_LIMITS.pollMs)
  }
}
