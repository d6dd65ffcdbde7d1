import { OnlyonceError } from '../errors.ts'

/** Errors that have left a protected call: what they prove, they proved there. */
const spent = new WeakSet<object>()

/**
 * Whether an error proves that the work which threw it did nothing. One that comes out of another protected call
 * inside that work proves it of that call alone: the work around it may have done much.
 */
export function provesNothingDone(error: unknown): boolean {
  return error instanceof OnlyonceError && error.code === 'not_executed' && !spent.has(error)
}

function spend(error: unknown): void {
  if (error instanceof OnlyonceError && error.code === 'not_executed') spent.add(error)
}

/** What leaves a protected call as an error proves nothing about the work of a call around it. */
export function throwSpent(error: unknown): never {
  spend(error)
  throw error
}
