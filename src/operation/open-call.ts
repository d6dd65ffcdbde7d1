/** The call that is in doubt when an attempt takes its record. */

import type { OperationAttempt } from './attempt.ts'
import { callKeys } from './call-site.ts'
import { type CallInDoubt, changed, NO_CALL, type Stop } from './stop.ts'

/** Stays so until it is proved what became of it, also where the attempt fails or comes to another step: operators and evidence find the record by it. */
export function openCallOf({ id, from, resumed }: OperationAttempt): CallInDoubt {
  if (resumed === null) return NO_CALL
  const { waitedFor, waitedStep, voidCalls } = resumed
  if (waitedFor !== null) return { waitsFor: waitedFor, waitsStep: waitedStep }
  if (waitedStep === null || from !== 'in_progress') return NO_CALL
  // The owner before was to send the call in place of a void one, and vanished: that one is in doubt now.
  return { waitsFor: callKeys({ ...id, step: waitedStep }, voidCalls).key, waitsStep: waitedStep }
}

/** Whether a call of this step is the one in doubt, of any generation. */
export function isCallOf(
  step: string,
  { waitsFor }: CallInDoubt,
  { id, resumed }: OperationAttempt,
): boolean {
  const { key, voidKeys } = callKeys({ ...id, step }, resumed?.voidCalls ?? [])
  return waitsFor === key || voidKeys.includes(waitsFor!)
}

/** The code does not come to the call in doubt, where the code that made it came to it next. */
export function passedBy({ waitsStep }: CallInDoubt, step: string | null): Stop {
  const call = waitsStep === null ? 'A call' : `The call of step ${waitsStep}`
  return changed(
    `${call} is in doubt, and the code ${step === null ? 'never asks for it' : `asks for ${step} in its place`}.`,
  )
}
