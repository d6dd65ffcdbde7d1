import type { Money } from '../money/index.ts'

/**
 * - `gateway`: what the processor owes us
 * - `balance`: what we owe the account
 * - `transfers`: on its way between two accounts
 * - `fees`: reserved
 */
export type LedgerAccount = 'gateway' | 'balance' | 'transfers' | 'fees'

/** One line of a transaction: debits are positive, credits negative. */
export interface Line {
  readonly ledgerAccount: LedgerAccount
  readonly currency: string
  readonly amount: bigint | number
}

/** From one ledger account to another: the second one is credited. */
function move(debited: LedgerAccount, credited: LedgerAccount, { amount, currency }: Money): readonly Line[] {
  return [
    { ledgerAccount: debited, currency, amount },
    { ledgerAccount: credited, currency, amount: -amount },
  ]
}

/** Money is held at the card. Pending; what ends it is `reverse()`. */
export const authorizationLines = (money: Money) => move('gateway', 'balance', money)

/** Money was taken: the processor owes it to us, and we to the account. */
export const captureLines = (money: Money) => move('gateway', 'balance', money)

/** What is held no more, because it was captured, voided, or has expired. Pending, and names what it reverses. */
export const releaseLines = (money: Money) => move('balance', 'gateway', money)

/** Money was given back to the payer. */
export const refundLines = (money: Money) => move('balance', 'gateway', money)

/** Money leaves an account for another one. */
export const transferOutLines = (money: Money) => move('balance', 'transfers', money)

/** It arrives; or comes back to where it left from, if it cannot. */
export const transferInLines = (money: Money) => move('transfers', 'balance', money)
