import type { Money } from '../gateway/index.ts'
import { Refused } from '../problems.ts'
import { CURRENCIES, decimalsOf, stepOf } from './currencies.ts'

export type { Money } from '../gateway/index.ts'
export { CURRENCIES, decimalsOf } from './currencies.ts'

/**
 * The most of one payment, refund or transfer, in minor units of any currency: the eight digits that Stripe takes. Ninety
 * million of such amounts are still a safe integer, so that no sum of captures or refunds in code can become inexact.
 */
export const AMOUNT_MAX = 99_999_999

/** Not longer than a currency, or it is not shown in an error. */
const SHOWN_MAX = 12

/** Whether this is a number that can be an amount: a whole one of minor units, from 1 to AMOUNT_MAX. */
export function isAmount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= AMOUNT_MAX
}

/**
 * An ISO 4217 code in capital letters, of what the client sent in any letters.
 *
 * @example
 * parseCurrency('eur') // 'EUR'
 */
export function parseCurrency(text: unknown, field = 'currency'): string {
  // Letters first: some that are none of ours turn into ours when they are made capital.
  const code = typeof text === 'string' && /^[A-Za-z]{3}$/.test(text) ? text.toUpperCase() : ''
  if (CURRENCIES.has(code)) return code
  const shown = typeof text === 'string' && text.length <= SHOWN_MAX ? ` ${JSON.stringify(text)}` : ''
  throw refuse(
    field,
    `${field}${shown} is not a currency that can be charged. Send a code of ISO 4217, such as "EUR".`,
  )
}

/**
 * An amount in minor units that can be charged in this currency.
 *
 * @example
 * parseAmount(1050, 'EUR') // 10.50 euros
 */
export function parseAmount(value: unknown, currency: string, field = 'amount'): number {
  if (typeof value !== 'number') {
    throw refuse(field, `${field} must be a number: a whole one of minor units, such as 1050 for 10.50.`)
  }
  if (!Number.isInteger(value)) {
    throw refuse(field, `${field} must be a whole number of minor units, without a fraction.`)
  }
  if (value < 1) throw refuse(field, `${field} must be at least 1.`)
  if (!isAmount(value)) throw refuse(field, `${field} must be at most ${AMOUNT_MAX}.`)
  if (value % stepOf(currency) !== 0) {
    throw refuse(
      field,
      `${field} must end in 0: processors take ${currency}, which has three decimals, in steps of 10.`,
    )
  }
  return value
}

/** Both of them, as they stand in a body. */
export function parseMoney(body: { readonly amount: unknown; readonly currency: unknown }): Money {
  const currency = parseCurrency(body.currency)
  return { amount: parseAmount(body.amount, currency), currency }
}

/**
 * For people: `1,234.50 EUR`. Exact for any amount, also a sum of the ledger's; never parse it.
 *
 * @example
 * formatMoney({ amount: 500, currency: 'JPY' }) // '500 JPY'
 */
export function formatMoney(money: { readonly amount: number | bigint; readonly currency: string }): string {
  const amount = BigInt(money.amount)
  const decimals = decimalsOf(money.currency)
  const digits = `${amount < 0n ? -amount : amount}`.padStart(decimals + 1, '0')
  const whole = digits.slice(0, digits.length - decimals).replace(/\B(?=(?:\d{3})+$)/g, ',')
  const fraction = decimals === 0 ? '' : `.${digits.slice(-decimals)}`
  return `${amount < 0n ? '-' : ''}${whole}${fraction} ${money.currency}`
}

function refuse(field: string, detail: string): Refused {
  return new Refused('invalid_request', { field, detail })
}
