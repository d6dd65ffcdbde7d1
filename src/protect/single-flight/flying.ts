import type { CallSignals } from '../../observe/index.ts'
import type { HandlerRequest } from '../handler.ts'
import type { Outcome, TransactionRequest } from '../transaction.ts'

/** What every kind of protected call brings. */
export type Flying = Pick<TransactionRequest, 'id' | 'fingerprint' | 'trace' | 'deadlineMs'> &
  Partial<Pick<HandlerRequest, 'inProgressMaxMs'>>

/** Begins the call; `begin` is told when its work runs. */
export type TakeOff<R> = (traced: R, signals: CallSignals, begin: () => void) => Promise<Outcome>

/** The record is to name the span of its attempt. Untraced requests, the most, are not copied. */
export function withTrace<R extends Flying>(request: R, { trace }: CallSignals): R {
  return trace === null ? request : { ...request, trace }
}
