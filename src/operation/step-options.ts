import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { isStandardSchema } from '../core/standard-schema.ts'
import type { Isolation } from '../store/contract.ts'
import type { CallStep } from './operation.ts'

/**
 * Checks what a call is given, before anything is sent or written: a duration that is none would otherwise come to light
 * in the database, after the call.
 */
export function checkForeign(name: string, step: CallStep<unknown>): void {
  refuseUnknown(`Step ${name}`, step, FOREIGN)
  if (typeof step.call !== 'function') refuse(name, 'call is a function that makes the call.')
  if (step.find !== undefined && typeof step.find !== 'function') refuse(name, 'find is a function.')
  if (step.result !== undefined && typeof step.result !== 'function' && !isStandardSchema(step.result))
    refuse(name, 'result is a function, or a schema.')
  if (step.idempotent !== undefined && typeof step.idempotent !== 'boolean')
    refuse(name, 'idempotent is true or false.')
  const { timeoutMs, visibleWithinMs, keyLifetimeMs } = step
  for (const [option, value] of Object.entries({ timeoutMs, visibleWithinMs, keyLifetimeMs })) {
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue
    refuse(name, `${option} is a whole number of milliseconds, at least 1.`)
  }
}

const FOREIGN: OptionNames<CallStep<unknown>> = {
  call: true,
  find: true,
  result: true,
  idempotent: true,
  timeoutMs: true,
  visibleWithinMs: true,
  keyLifetimeMs: true,
}

export function checkAtomic(
  name: string,
  work: unknown,
  options: { readonly isolation?: Isolation } = {},
): void {
  refuseUnknown(`Step ${name}`, options, { isolation: true })
  const { isolation } = options
  if (typeof work !== 'function') refuse(name, 'an atomic step has a function.')
  if (isolation !== undefined && !ISOLATIONS.includes(isolation))
    refuse(name, `isolation is one of ${ISOLATIONS.join(', ')}.`)
}

export const ISOLATIONS: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

function refuse(name: string, detail: string): never {
  throw new OnlyonceError('option_invalid', { detail: `Step ${name}: ${detail}` })
}
