import { invalidAnswerOf } from '../../core/invalid.ts'
import { provesNothingDone, saysInvalid } from '../../protect/proof.ts'
import type { IdempotencyContext } from '../index.ts'

/** Whether a handler has said by what it threw what becomes of its record: that nothing was done, or that its request is wrong. */
export function saysWhatBecomes(error: unknown): boolean {
  return provesNothingDone(error) || saysInvalid(error)
}

/** What an adapter has to tell the boundary of a throw; `rollsBack` is for a handler in a transaction. */
export type ThrowHearer = Pick<IdempotencyContext<unknown>, 'notExecuted' | 'invalid'> & {
  readonly rollsBack?: boolean
  readonly hear?: (thrown: unknown, hadReplied: boolean) => void
}

/**
 * Tells the boundary what it means that a handler threw, before the framework makes a response of it. `notExecuted()` and
 * `invalid()` say what they say. Every other throw rolls a transaction back, with any status that its response is given, and is told to
 * operators as the reason of a response that says only 500. `hadReplied`: its reply was whole before it threw, so no response is made
 * of the error.
 */
export function passOn(
  context: ThrowHearer | null | undefined,
  error: unknown,
  hadReplied: boolean = false,
): void {
  context?.hear?.(error, hadReplied)
  const answer = invalidAnswerOf(error)
  if (answer !== null) context?.invalid(answer)
  else if (saysWhatBecomes(error) || context?.rollsBack === true) context?.notExecuted(error)
}

/**
 * What a framework is handed for a throw of the application's. Express and Fastify take an error without a value, and Express
 * the words `route` and `router`, for "go on": the handler would run unprotected.
 */
export function errorFor(thrown: unknown): unknown {
  if (thrown && thrown !== 'route' && thrown !== 'router') return thrown
  return new Error('A function of the application threw a value that is no error.', { cause: thrown })
}
