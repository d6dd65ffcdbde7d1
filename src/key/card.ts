/**
 * Card numbers in text. All of it is linear: from each start at most nineteen digits are looked at, and no
 * regular expression backtracks over user text.
 */

const DIGITS_MIN = 13
const DIGITS_MAX = 19
/** `4242 - 4242` is still one number; more than this between two digits separates two numbers. */
const SEPARATORS_MAX = 3

/**
 * Whether the whole text is a card number: 13 to 19 digits that pass the Luhn check, with spaces, dashes or
 * dots between them.
 *
 * @example
 * isCardNumber('4242 4242 4242 4242') // true
 */
export function isCardNumber(text: string): boolean {
  return text.length > 0 && findCardEnd(text, 0) === text.length
}

/**
 * Replaces every card number in free text, so that it can be stored or logged.
 *
 * @example
 * maskCardNumbers('declined: 4242-4242-4242-4242') // 'declined: [card number]'
 */
export function maskCardNumbers(text: string): string {
  let masked = ''
  let copied = 0
  let hiddenEnd = 0
  for (let i = 0; i < text.length; i++) {
    if (!isDigit(text.charCodeAt(i)) || (i > 0 && isDigit(text.charCodeAt(i - 1)))) continue
    const end = findCardEnd(text, i)
    if (end <= hiddenEnd) continue
    // Two numbers that overlap are hidden together: either may be the real one.
    if (i >= hiddenEnd) masked += `${text.slice(copied, i)}[card number]`
    hiddenEnd = end
    copied = end
  }
  return copied === 0 ? text : masked + text.slice(copied)
}

/** The longest that a card number can be written. */
const SPAN_MAX = DIGITS_MAX + (DIGITS_MAX - 1) * SEPARATORS_MAX

/**
 * The beginning of a text, without card numbers. Only that much of it is looked at: a text may be of any length, and a caller waits. Masked
 * before it is cut: half a card number is none that could be recognised.
 *
 * @example
 * maskBeginning(error.message, 300)
 */
export function maskBeginning(text: string, lengthMax: number): string {
  return maskCardNumbers(text.slice(0, lengthMax + SPAN_MAX)).slice(0, lengthMax)
}

/**
 * Where the longest card number that starts here ends, or -1. It ends where a group of digits ends: cutting
 * a longer number into windows would find a valid one by chance in almost every long number.
 */
function findCardEnd(text: string, start: number): number {
  let found = -1
  let digits = 0
  let separators = 0
  // Luhn doubles every second digit from the right, and the right end moves: keep both sums.
  let sumEvenDoubled = 0
  let sumOddDoubled = 0
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (!isDigit(code)) {
      if (!isSeparator(code) || ++separators > SEPARATORS_MAX || digits === 0) break
      continue
    }
    separators = 0
    if (++digits > DIGITS_MAX) break
    const digit = code - 0x30
    const doubled = digit > 4 ? 2 * digit - 9 : 2 * digit
    sumEvenDoubled += digits % 2 === 0 ? doubled : digit
    sumOddDoubled += digits % 2 === 1 ? doubled : digit
    if (digits < DIGITS_MIN || isDigit(text.charCodeAt(i + 1))) continue
    const sum = digits % 2 === 0 ? sumOddDoubled : sumEvenDoubled
    if (sum % 10 === 0) found = i + 1
  }
  return found
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function isSeparator(code: number): boolean {
  return code === 0x20 || code === 0x2d || code === 0x2e
}
