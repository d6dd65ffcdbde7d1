/** "Not now": nothing was done, so nothing has to be remembered, where that is proved. */
export const NOT_NOW: readonly number[] = [400, 401, 403, 404, 408, 409, 425, 429]

/** Whether an answer says "not now", or that it failed: then the same request may run again. */
export function isNotNow(status: number): boolean {
  return status >= 500 || NOT_NOW.includes(status)
}
