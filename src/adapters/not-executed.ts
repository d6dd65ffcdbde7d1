import { provesNothingDone } from '../protect/proof.ts'

/** Whether a handler has said, by what it threw, that nothing was done. */
export function isNotExecuted(error: unknown): boolean {
  return provesNothingDone(error)
}
