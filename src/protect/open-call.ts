/** The call that is in doubt when an attempt takes its record. */
import { callKeys } from './call-site.ts'
import type { OperationAttempt } from './operation-attempt.ts'
import { type CallInDoubt, changed, NO_CALL, type Stop } from './operation-stop.ts'

/** Stays so until it is proved what became of it, whatever the attempt does: operators and evidence find the record by it. */
export function openCallOf({ id, from, resumed }: OperationAttempt): CallInDoubt {
  if (resumed === null) return NO_CALL
  const { waited_for, waited_step, void_calls } = resumed
  if (waited_for !== null) return { waits_for: waited_for, waits_step: waited_step }
  if (waited_step === null || from !== 'in_progress') return NO_CALL
  // The owner before was to send the call in place of a void one, and vanished: that one is in doubt now.
  return { waits_for: callKeys({ ...id, step: waited_step }, void_calls).key, waits_step: waited_step }
}

/** Whether a call of this step is the one in doubt, of any generation. */
export function isCallOf(
  step: string,
  { waits_for }: CallInDoubt,
  { id, resumed }: OperationAttempt,
): boolean {
  const { key, void_keys } = callKeys({ ...id, step }, resumed?.void_calls ?? [])
  return waits_for === key || void_keys.includes(waits_for!)
}

/** The code does not come to the call in doubt, where the code that made it came to it next. */
export function passedBy({ waits_step }: CallInDoubt, step: string | null): Stop {
  const call = waits_step === null ? 'A call' : `The call of step ${waits_step}`
  return changed(
    `${call} is in doubt, and the code ${step === null ? 'never asks for it' : `asks for ${step} in its place`}.`,
  )
}
