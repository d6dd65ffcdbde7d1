/** The calls of a request, as the processor knows them. */
import type { RecordId } from 'onlyonce'
import { derivedKey } from 'onlyonce/keys'
import type { RecordSummary } from 'onlyonce/operator'
import type pg from 'pg'
import type { Movement } from '../gateway/index.ts'
import type { Gateways } from './gateways.ts'
import { callStepOf } from './told.ts'
import type { Unanswered } from './visible.ts'

export interface Looking {
  readonly pool: pg.Pool
  readonly gateways: Gateways
  /** The keys of the calls that the request may have made. */
  readonly calls: readonly string[]
  /** Of those, the ones that operators have declared void. */
  readonly voidCalls: readonly string[]
  readonly unanswered: Unanswered
  /** The member of the operator's request that is wrong where the processor says otherwise. */
  readonly field: 'decision' | 'outcome'
}

/** Of these the processor makes an object of their own. What others name is their payment. */
export const OBJECTS: Readonly<Record<string, Movement['kind']>> = {
  'payments.create': 'payment',
  'refunds.create': 'refund',
}

/** Without its name at the processor, our books could never be compared with the processor's. */
export const isNamed = (operation: string): boolean => OBJECTS[operation] !== undefined

/** The keys under which the request may have asked the processor: of the call that it waits for, and of those that were declared void. */
export function callKeysOf(
  record: RecordId,
  { waitsFor, voidCalls }: Pick<RecordSummary, 'waitsFor' | 'voidCalls'>,
): readonly string[] {
  const { account, operation, key } = record
  const step = callStepOf(operation)
  const keys = new Set(voidCalls)
  if (waitsFor !== null) keys.add(waitsFor)
  if (step !== undefined)
    for (let generation = 0; generation <= voidCalls.length; generation += 1)
      keys.add(derivedKey({ account, operation, key, step, generation }))
  return [...keys]
}
