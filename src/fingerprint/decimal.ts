/**
 * Exact comparison of JSON numbers without big-number arithmetic: only text is cut and joined, so a number
 * takes time in proportion to its own length, however large its exponent is.
 */

/** Up to here plain arithmetic on an exponent is exact, with room for the digits of any body. */
const EXPONENT_DIGITS_MAX = 15
const EXPONENT_BASE = 1e15
/** Any decimal of at most fifteen digits survives the way to a double and back (IEEE 754 binary64). */
const DIGITS_ALWAYS_EXACT = 15

/**
 * The one spelling of a number: digits without zeros at either end, and a power of ten. Two JSON numbers
 * are numerically equal exactly when their spellings are.
 *
 * @example
 * normalizeDecimal('1.50e1') === normalizeDecimal('15') // true, both are '15e0'
 */
export function normalizeDecimal(lexeme: string): string {
  const sign = lexeme.startsWith('-') ? '-' : ''
  const mantissaEnd = findExponent(lexeme)
  const mantissa = lexeme.slice(sign.length, mantissaEnd)
  const dot = mantissa.indexOf('.')
  const digits = dot < 0 ? mantissa : mantissa.slice(0, dot) + mantissa.slice(dot + 1)
  const fractionDigits = dot < 0 ? 0 : mantissa.length - dot - 1
  let start = 0
  let end = digits.length
  while (start < end && digits[start] === '0') start++
  if (start === end) return '0'
  while (digits[end - 1] === '0') end--
  const shift = digits.length - end - fractionDigits
  return `${sign}${digits.slice(start, end)}e${shiftExponent(lexeme.slice(mantissaEnd + 1), shift)}`
}

/**
 * Whether a double holds a JSON number as it is written: the shortest text of the double means the same.
 *
 * @example
 * isExact('0.1', 0.1) // true
 * isExact('9007199254740993', 9007199254740993) // false
 */
export function isExact(lexeme: string, value: number): boolean {
  if (lexeme.length <= DIGITS_ALWAYS_EXACT && findExponent(lexeme) === lexeme.length) return true
  if (!Number.isFinite(value)) return false
  return normalizeDecimal(lexeme) === normalizeDecimal(String(value))
}

function findExponent(lexeme: string): number {
  for (let i = 0; i < lexeme.length; i++) {
    // 'e' and 'E' differ in this one bit.
    if ((lexeme.charCodeAt(i) | 0x20) === 0x65) return i
  }
  return lexeme.length
}

function shiftExponent(exponent: string, shift: number): string {
  const negative = exponent.startsWith('-')
  let start = negative || exponent.startsWith('+') ? 1 : 0
  while (start < exponent.length && exponent[start] === '0') start++
  const digits = exponent.slice(start)
  if (digits.length <= EXPONENT_DIGITS_MAX) return String((negative ? -1 : 1) * Number(digits) + shift)
  // Far larger than any shift, so the sign stays as it is.
  return (negative ? '-' : '') + addToLong(digits, negative ? -shift : shift)
}

/** Adds a small number to one that has too many digits for arithmetic: at most one carry to the left. */
function addToLong(digits: string, addend: number): string {
  const head = digits.slice(0, -EXPONENT_DIGITS_MAX)
  const tail = Number(digits.slice(-EXPONENT_DIGITS_MAX)) + addend
  if (tail < 0) return stepLong(head, '0', '9', -1) + pad(tail + EXPONENT_BASE)
  if (tail >= EXPONENT_BASE) return stepLong(head, '9', '0', 1) + pad(tail - EXPONENT_BASE)
  return head + pad(tail)
}

function stepLong(digits: string, turning: string, turned: string, step: number): string {
  let i = digits.length - 1
  while (i >= 0 && digits[i] === turning) i--
  const tail = turned.repeat(digits.length - 1 - i)
  if (i < 0) return `1${tail}`
  const stepped = Number(digits[i]) + step
  return i === 0 && stepped === 0 ? tail : digits.slice(0, i) + stepped + tail
}

function pad(tail: number): string {
  return String(tail).padStart(EXPONENT_DIGITS_MAX, '0')
}
