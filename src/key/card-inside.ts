/**
 * Card numbers inside free text, for refusing the text. Text that is refused wrongly is a payment that is not made, so this asks for
 * more than `maskCardNumbers`: the prefix and the length of an issuer, and digits in one piece or in groups as people write cards.
 * All of it is linear: from each group of digits at most nineteen digits are looked at, and no regular expression backtracks.
 */

const DIGITS_MIN = 13
const DIGITS_MAX = 19
const PHONE_DIGITS_MAX = 15
/** `4242 - 4242` is still one number. */
const SEPARATORS_MAX = 3

/** By the first digits, from and to, and the lengths that such cards have. */
const ISSUERS: readonly (readonly [from: number, to: number, ...lengths: number[]])[] = [
  // Visa.
  [4, 4, 13, 16, 19],
  // Mastercard.
  [51, 55, 16],
  [2221, 2720, 16],
  // American Express.
  [34, 34, 15],
  [37, 37, 15],
  // Diners Club.
  [300, 305, 14, 16, 19],
  [3095, 3095, 14, 16, 19],
  [36, 36, 14, 16, 19],
  [38, 39, 14, 16, 19],
  // JCB.
  [3528, 3589, 16, 17, 18, 19],
  // Mir.
  [2200, 2204, 16, 17, 18, 19],
  // Maestro.
  [50, 50, 13, 14, 15, 16, 17, 18, 19],
  [56, 58, 13, 14, 15, 16, 17, 18, 19],
  [63, 63, 13, 14, 15, 16, 17, 18, 19],
  [67, 67, 13, 14, 15, 16, 17, 18, 19],
  // Discover, UnionPay, RuPay.
  [60, 60, 16, 17, 18, 19],
  [62, 62, 16, 17, 18, 19],
  [64, 65, 16, 17, 18, 19],
]

/** Their digits are chance: one in fifty thousand has sixteen of them in a row that look like a card. */
const UUID = /(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f])/gi
/** The same without dashes, and digests. Digits alone are no such id. */
const HEXADECIMAL = /(?<![0-9a-z])(?=[0-9]*[a-f])[0-9a-f]{32,}(?![0-9a-z])/gi

/**
 * Whether text holds what is written like a card number, with spaces, dashes, dots, slashes or underscores between its digits, with
 * commas, colons, asterisks, bars, brackets or quotes between its groups, or without. A number in the middle of letters and other
 * digits, such as an id in hexadecimal, is none.
 *
 * @example
 * holdsCardNumber('paid with 4242-4242-4242-4242') // true
 */
export function holdsCardNumber(text: string): boolean {
  const plain = plainOf(text).replace(UUID, '#').replace(HEXADECIMAL, '#')
  for (let i = 0; i < plain.length; i++) {
    if (isDigit(plain, i) && !isDigit(plain, i - 1) && isFreeBefore(plain, i) && isCardAt(plain, i))
      return true
  }
  return false
}

/** Digits and dashes of other scripts and widths become those of ASCII; what has no width or stands on a digit is taken out. */
function plainOf(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
  if (/^[\x00-\x7f]*$/.test(text)) return text
  return text
    .normalize('NFKC')
    .replace(/[\p{Cf}\p{M}]/gu, '')
    .replace(/[\p{Pd}\u2212]/gu, '-')
    .replace(/\p{Zs}/gu, ' ')
    .replace(/[^\P{Nd}0-9]/gu, inAscii)
}

/** Unicode keeps the ten digits of a script in one row, zero first. The one place where rows touch has become ASCII by NFKC. */
function inAscii(digit: string): string {
  let code = digit.codePointAt(0)!
  let value = 0
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - 1))) {
    code -= 1
    value += 1
  }
  return `${value}`
}

/** Whether a card number begins here, at the first digit of a group. */
function isCardAt(text: string, start: number): boolean {
  let digits = ''
  let separators = 0
  let isList = false
  const groups = [0]
  for (let i = start; i < text.length && digits.length <= DIGITS_MAX; i++) {
    if (!isDigit(text, i)) {
      const isMark = isListMark(text, i)
      if (!(isMark || isSeparator(text, i)) || ++separators > SEPARATORS_MAX) return false
      isList ||= isMark
      continue
    }
    if (separators > 0) groups.push(0)
    separators = 0
    digits += text[i]
    groups[groups.length - 1]! += 1
    if (digits.length < DIGITS_MIN || isDigit(text, i + 1)) continue
    // `+49 151 …` is a telephone number, which has fifteen digits at most.
    if (text[start - 1] === '+' && digits.length <= PHONE_DIGITS_MAX) continue
    if (isCard(digits) && isWrittenSo(groups, isList) && isFreeAfter(text, i)) return true
  }
  return false
}

/** The check digit is looked at first: it is cheap, and wrong in nine of ten numbers that are no card. */
function isCard(digits: string): boolean {
  if (!passesLuhn(digits)) return false
  return ISSUERS.some(([from, to, ...lengths]) => {
    const prefix = Number(digits.slice(0, `${from}`.length))
    return prefix >= from && prefix <= to && lengths.includes(digits.length)
  })
}

function passesLuhn(digits: string): boolean {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 0x30
    const doubled = digit > 4 ? 2 * digit - 9 : 2 * digit
    sum += i % 2 === 1 ? doubled : digit
  }
  return sum % 10 === 0
}

/**
 * In one piece; in groups of one size, of which the last may be smaller; in groups of which each has a multiple of four digits; or as
 * American Express and Diners Club print theirs. `4500012345-2026-11-15` is an invoice and a day. Between marks that stand between the
 * members of a list, too, only groups as they are printed on a card count.
 */
function isWrittenSo(groups: readonly number[], isList: boolean): boolean {
  const [first = 0] = groups
  const last = groups.at(-1)!
  if (isList && first !== 4) return false
  if (!isList && groups.every((size) => size % 4 === 0)) return true
  if (groups.slice(0, -1).every((size) => size === first) && last <= first) return true
  return first === 4 && groups[1] === 6 && groups.length === 3
}

/** Letters may stand at either end, as in `card4242…`; digits behind those letters make it an id. */
function isFreeBefore(text: string, start: number): boolean {
  let i = start - 1
  while (isLetter(text, i)) i -= 1
  return !isDigit(text, i)
}

function isFreeAfter(text: string, last: number): boolean {
  let i = last + 1
  while (isLetter(text, i)) i += 1
  return !isDigit(text, i)
}

function isDigit(text: string, i: number): boolean {
  const code = text.charCodeAt(i)
  return code >= 0x30 && code <= 0x39
}

function isLetter(text: string, i: number): boolean {
  const code = text.charCodeAt(i) | 0x20
  return code >= 0x61 && code <= 0x7a
}

function isSeparator(text: string, i: number): boolean {
  return ' \t\r\n-._/'.includes(text[i]!)
}

function isListMark(text: string, i: number): boolean {
  return ',:;|*+·•()[]\'"'.includes(text[i]!)
}
