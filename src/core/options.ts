/** The one place where the names of options are checked: an option that is misspelt must not be ignored without a word. */
import { OnlyonceError } from './errors.ts'

/** All members that some case of T has. */
type MembersOf<T> = T extends unknown ? keyof T & string : never

/**
 * The names that options of type T may have. A table and not a list, so that the compiler refuses one that lacks a member
 * of T, or has one that T has not.
 */
export type OptionNames<T> = Readonly<Record<MembersOf<T>, true>>

/**
 * Refuses options that are no object, and members that no option is called by; the message names the nearest one.
 *
 * @example
 * refuseUnknown('postgres()', options, { pool: true, schema: true })
 */
export function refuseUnknown(owner: string, given: unknown, known: Readonly<Record<string, true>>): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new OnlyonceError('option_invalid', { detail: `${owner} takes an object of options.` })
  }
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(known, name)) throw unknownOption(owner, name, Object.keys(known))
  }
}

/**
 * Why a value is no list, for a message; null where it is one. A text can be gone through as a list can, letter by letter: taken for
 * one, it would mean nothing without a word.
 *
 * @example
 * whyNoList('methods', 'POST') // "methods is a list: ['POST']."
 */
export function whyNoList(name: string, given: unknown): string | null {
  if (Array.isArray(given)) return null
  if (typeof given === 'number') return `${name} is a list: [${given}].`
  if (typeof given !== 'string') return `${name} is a list.`
  return `${name} is a list: ['${given.slice(0, NAME_SHOWN_MAX)}'].`
}

export function requireList(name: string, given: unknown): void {
  const detail = whyNoList(name, given)
  if (detail !== null) throw new OnlyonceError('option_invalid', { detail })
}

/** How a request is protected, by a route or by a call from code. */
export type Protection = 'transaction' | 'within' | 'handler' | 'operation'

interface Use {
  readonly by: readonly Protection[]
  /** Why another protection makes no use of it, where that is not plain. */
  readonly why?: string
}

/** Options of routes and of calls that only some protections use. Any other option concerns all of them. */
const USES: Readonly<Record<string, Use>> = {
  protect: { by: ['handler', 'transaction'] },
  isolation: { by: ['transaction'] },
  exclusive: { by: ['transaction'] },
  strictTx: { by: ['transaction'] },
  leaseMs: { by: ['handler', 'operation'], why: 'A transaction has no lease: a crash rolls it back.' },
  inProgressMaxMs: {
    by: ['handler', 'operation'],
    why: 'How long a transaction takes is bounded by deadlineMs, and by transactionMaxMs of its store.',
  },
  rerunnable: {
    by: ['handler'],
    why: 'A transaction that fails is rolled back, and an operation goes on behind its last step: both may run again anyway.',
  },
  recover: {
    by: ['handler'],
    why: 'A transaction is rolled back when its process dies, and calls of an operation have find.',
  },
  stream: { by: ['handler'], why: 'The reply of any other would leave before the commit.' },
  replySizeMaxBytes: { by: ['handler', 'transaction'] },
  replyHeaders: { by: ['handler', 'transaction'] },
  input: { by: ['operation'] },
}

const CALLED: Readonly<Record<Protection, string>> = {
  transaction: "transactions (protect: 'transaction', or once.transaction())",
  within: 'once.within()',
  handler: 'handlers',
  operation: 'durable operations',
}

/** Whether a protection makes any use of an option. */
export function isUsedBy(protection: Protection, name: string): boolean {
  return !Object.hasOwn(USES, name) || USES[name]!.by.includes(protection)
}

/**
 * A sentence about an option that was given and that the protection makes no use of; null where there is none. What is false or undefined
 * asks for nothing.
 */
export function unusedOption(protection: Protection, given: object): string | null {
  const asked = Object.entries(given).filter(([, value]) => value !== undefined && value !== false)
  const stray = asked.find(([name]) => !isUsedBy(protection, name))
  if (stray === undefined) return null
  const { by, why } = USES[stray[0]]!
  const concerned = by.map((one) => CALLED[one]).join(' and ')
  return `${stray[0]} concerns ${concerned}, and is not used here.${why === undefined ? '' : ` ${why}`}`
}

/** The same of a call from code, together with names that no option has. */
export function refuseStray(
  owner: string,
  given: unknown,
  known: Readonly<Record<string, true>>,
  protection: Protection,
): void {
  if (typeof given === 'object' && given !== null) {
    const strays = Object.entries(given).filter(([name]) => !Object.hasOwn(known, name))
    const detail = unusedOption(protection, Object.fromEntries(strays))
    if (detail !== null) throw new OnlyonceError('option_invalid', { detail: `${owner}: ${detail}` })
  }
  refuseUnknown(owner, given, known)
}

function unknownOption(owner: string, name: string, known: readonly string[]): OnlyonceError {
  const near = nearest(name, known)
  const advice = near === null ? `Its options are ${known.join(', ')}.` : `Did you mean ${near}?`
  const shown = name.length > NAME_SHOWN_MAX ? `${name.slice(0, NAME_SHOWN_MAX)}…` : name
  return new OnlyonceError('option_invalid', { detail: `${owner} has no option ${shown}. ${advice}` })
}

/** A name comes from code, but its message may be logged. */
const NAME_SHOWN_MAX = 64

/**
 * The name that was probably meant, or null. Case and underscores do not count, so that `lease_ms` finds `leaseMs`; a name without
 * its unit finds the one with it.
 */
export function nearest(name: string, known: readonly string[]): string | null {
  const wanted = plain(name)
  let best: { readonly name: string; readonly distance: number } | null = null
  for (const candidate of known) {
    const other = plain(candidate)
    const part = wanted.length >= PART_MIN && (other.startsWith(wanted) || wanted.startsWith(other))
    const distance = part ? 1 : editDistance(wanted, other)
    const enough = distance <= Math.max(1, Math.floor(Math.max(wanted.length, other.length) / 3))
    if (enough && (best === null || distance < best.distance)) best = { name: candidate, distance }
  }
  return best?.name ?? null
}

/** Shorter beginnings are those of too many names. */
const PART_MIN = 4

function plain(name: string): string {
  return name.slice(0, NAME_SHOWN_MAX).toLowerCase().replaceAll(/[_-]/g, '')
}

/** How many letters have to be put in, left out, changed or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const changed = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let least = Math.min(changed, rows[i - 1]![j]! + 1, row[j - 1]! + 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) least = Math.min(least, rows[i - 2]![j - 2]! + 1)
      row.push(least)
    }
    rows.push(row)
  }
  return rows[a.length]![b.length]!
}
