/** How errors of the network are read. They may be anything, and a look at one must not throw. */

/** Codes of Node.js and of undici for a connection that never came about: no byte of the request was sent. */
const NEVER_CONNECTED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT']

/** Whether an error of fetch proves that nothing was sent. Browsers do not tell that of any error. */
export function wasNeverSent(thrown: unknown): boolean {
  try {
    const { cause } = thrown as { cause?: { code?: unknown } | null }
    return NEVER_CONNECTED.includes(cause?.code as string)
  } catch {
    return false
  }
}

/** Calls hooks of the caller's. What one throws, now or later, is the page's to hear, and must not end a payment or a process. */
export function tell<T extends unknown[]>(
  hooks: readonly (((...given: T) => unknown) | undefined)[],
  ...given: T
): void {
  for (const hook of hooks) (async () => hook?.(...given))().catch(report)
}

const report = (thrown: unknown) =>
  (globalThis as { reportError?: (thrown: unknown) => void }).reportError?.(thrown)
