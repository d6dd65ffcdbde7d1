/** What the front door can be told, by name. */

import { OnlyonceError } from '../core/errors.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import type {
  ExecuteCall,
  IssueKeyCall,
  OnlyonceOptions,
  ProtectedCall,
  RunCall,
  TransactionCall,
} from './door.ts'

export const OPTIONS: OptionNames<OnlyonceOptions<unknown>> = {
  store: true,
  secret: true,
  encryption: true,
  keys: true,
  retentionMs: true,
  deadlineMs: true,
  bodySizeMaxBytes: true,
  strictTx: true,
  clock: true,
  observe: true,
  stuckAfterMs: true,
  stuckCheckEveryMs: true,
  operations: true,
  reconcileAfterMs: true,
  recover: true,
  graceMs: true,
  background: true,
  crashPoint: true,
}

export function checkDoorOptions<Tx>(options: OnlyonceOptions<Tx>): void {
  refuseUnknown('onlyonce()', options, OPTIONS)
  if (typeof options.store?.transact !== 'function') {
    throw new OnlyonceError('option_invalid', { detail: 'Pass a store, for example postgres({ pool }).' })
  }
}

const PROTECTED: OptionNames<ProtectedCall> = {
  account: true,
  operation: true,
  key: true,
  keyFrom: true,
  input: true,
  retentionMs: true,
  deadlineMs: true,
}
const TRANSACTION: OptionNames<TransactionCall> = {
  ...PROTECTED,
  isolation: true,
  exclusive: true,
  strictTx: true,
}
const LEASED = { leaseMs: true, inProgressMaxMs: true } as const
const HANDLER: OptionNames<ExecuteCall> = { ...PROTECTED, ...LEASED, rerunnable: true }
const { operation: _, ...NAMED } = PROTECTED
const RUN: OptionNames<RunCall<unknown>> = { ...NAMED, ...LEASED }
const ISSUE_KEY: OptionNames<IssueKeyCall> = { account: true, operation: true, expiresInMs: true }

/** What each kind of call may say. */
export const CALLS = {
  transaction: TRANSACTION,
  within: PROTECTED,
  handler: HANDLER,
  run: RUN,
  issueKey: ISSUE_KEY,
  /** The very call whose key is asked about may be passed. */
  explain: { ...TRANSACTION, ...HANDLER },
} as const
