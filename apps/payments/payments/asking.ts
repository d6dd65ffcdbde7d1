/** A question of an operator to the processor. */
import type { Gateway } from '../gateway/index.ts'
import { Refused } from '../problems.ts'

/** Null where the operator answers for a processor that cannot be asked. Throws `unavailable` where no operator does. */
export async function askOr<T>(
  gateway: Gateway | undefined,
  unchecked: boolean,
  ask: (gateway: Gateway, signal: AbortSignal) => Promise<T>,
): Promise<{ readonly answer: T } | null> {
  if (gateway === undefined) throw notAsked('No processor is set up for the mode of the account.')
  try {
    return { answer: await ask(gateway, AbortSignal.timeout(gateway.timeoutMs)) }
  } catch {
    if (unchecked) return null
    throw notAsked('The processor cannot be asked about it now.')
  }
}

export function notAsked(why: string): Refused {
  const detail = `${why} Nothing was decided. Try again later.`
  return new Refused('unavailable', { detail, more: { executed: 'not_by_this_request' } })
}
