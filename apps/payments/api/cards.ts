import { holdsCardNumber, maskCardNumbers } from 'onlyonce/keys'
import { Refused } from '../problems.ts'
import { API_LIMITS } from './limits.ts'

/**
 * Refuses a body that holds a card number, in any text and in any name of a member. What is accepted is kept, shown, told to webhook
 * endpoints and logged by them, and a card number in it would make all of that a matter of PCI DSS. It comes before a key is claimed, so the
 * client can take the number out and send the same key.
 */
export function refuseCardNumbers(body: unknown, path: readonly string[] = []): void {
  if (typeof body === 'string') {
    if (isCardIn(body)) refuseAt(path)
    return
  }
  // Bytes belong to routes that check who signed them; they have no free text of a client's.
  if (typeof body !== 'object' || body === null || Buffer.isBuffer(body)) return
  for (const [name, member] of Object.entries(body)) {
    if (isCardIn(name)) refuseAt([...path, name])
    refuseCardNumbers(member, [...path, name])
  }
}

/** As it is written, and as a URL means it; an address that stands inside of another is encoded once more. */
function isCardIn(text: string): boolean {
  let read = text
  for (let times = 0; times <= API_LIMITS.percentDecodedTimesMax; times += 1) {
    if (holdsCardNumber(read)) return true
    const meant = decoded(read)
    if (meant === read) return false
    read = meant
  }
  return false
}

/** What cannot be decoded spoils only itself: `decodeURIComponent` would give up the digits before it as well. */
function decoded(text: string): string {
  if (!text.includes('%') && !text.includes('+')) return text
  return text
    .replaceAll('+', ' ')
    .replace(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
}

/**
 * Where something is wrong, as it is shown to the client. Names of members and parameters are the client's own, and answers are logged. It
 * is masked before it is cut: a part of a card number looks like none.
 */
export function shownField(path: readonly string[]): string {
  const { nameShownLengthMax } = API_LIMITS
  const shown = path.map((name) => maskCardNumbers(name)).map((name) => (isCardIn(name) ? MASKED : name))
  const field = shown.map((name) => name.slice(0, nameShownLengthMax)).join('.')
  // Two names beside each other may be one number.
  return isCardIn(field) ? MASKED : field
}

const MASKED = '[card number]'

function refuseAt(path: readonly string[]): never {
  const field = shownField(path)
  throw new Refused('card_number', {
    ...(field !== '' && { field }),
    detail: `${field || 'The body'} holds what looks like a card number. Send a token of the processor's as payment_method, and a card number nowhere.`,
  })
}
