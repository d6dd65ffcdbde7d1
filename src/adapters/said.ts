import type { OnceContext } from '../boundary/index.ts'
import { invalidAnswerOf } from '../invalid.ts'
import { provesNothingDone, saysInvalid } from '../protect/proof.ts'

/** Whether a handler has said by what it threw what becomes of its record: that nothing was done, or that its request is wrong. */
export function saysWhatBecomes(error: unknown): boolean {
  return provesNothingDone(error) || saysInvalid(error)
}

/** Tells the boundary what a handler has said by what it threw. False where it has said nothing. */
export function passOn(
  context: Pick<OnceContext<unknown>, 'notExecuted' | 'invalid'> | null | undefined,
  error: unknown,
): boolean {
  if (!saysWhatBecomes(error)) return false
  const answer = invalidAnswerOf(error)
  if (answer === null) context?.notExecuted()
  else context?.invalid(answer)
  return true
}
