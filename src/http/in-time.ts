import { LIMITS } from '../core/limits.ts'

export const LATE = Symbol('late')

/** A function of the route that never answers would keep its client waiting for ever. What it says later is dropped. */
export async function inTime<T>(said: T | PromiseLike<T>, maxMs: number): Promise<T | typeof LATE> {
  if (typeof (said as PromiseLike<T> | undefined)?.then !== 'function') return said
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(() => resolve(LATE), Math.min(maxMs, LIMITS.timerMaxMs))
  })
  try {
    return await Promise.race([said, late])
  } finally {
    clearTimeout(timer)
  }
}
