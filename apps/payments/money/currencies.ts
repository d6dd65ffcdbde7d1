/**
 * Which currencies there are comes from the platform (`Intl`); how many decimals they have does not. Intl tells what is in
 * use in the shops, after CLDR: no decimals for HUF, COP, IDR, PKR and a dozen others, where ISO 4217 and the processors count
 * two. It also changes with the version of Node.js. An amount that is read with the wrong number is wrong by a hundred, so ISO's
 * short lists stand here, and everything else has two.
 */
const ZERO_DECIMALS = 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF'
const THREE_DECIMALS = 'BHD IQD JOD KWD LYD OMR TND'

/**
 * What Intl knows and nobody can pay with: units of account and of test, metals, and currencies that were withdrawn (their
 * countries use another one, or the same under a new code).
 */
const NO_MONEY = 'XDR XSU XUA XAU XAG XPT XPD XTS XXX ANG BGN CUC HRK SLL ZWL'

/**
 * Stripe does not count these in ISO's minor units: 5 ISK are 500 there, MGA have no decimals there and two in ISO's list, and of
 * UGX its documentation says both. Refused until an adapter converts them: better no charge than a hundredfold one.
 */
const COUNTED_OTHERWISE = 'ISK MGA UGX'

const zero = new Set(ZERO_DECIMALS.split(' '))
const three = new Set(THREE_DECIMALS.split(' '))
const refused = new Set(`${NO_MONEY} ${COUNTED_OTHERWISE}`.split(' '))

/** All that can be charged, in capital letters. */
export const CURRENCIES: ReadonlySet<string> = new Set(
  Intl.supportedValuesOf('currency').filter((code) => !refused.has(code)),
)

/** How many decimals the currency has: its minor unit is one by ten to the power of it. */
export function decimalsOf(currency: string): 0 | 2 | 3 {
  return zero.has(currency) ? 0 : three.has(currency) ? 3 : 2
}

/** The smallest difference of two amounts. Processors take three decimals only where the last one is zero. */
export function stepOf(currency: string): 1 | 10 {
  return three.has(currency) ? 10 : 1
}
