/** Which headers can be sent, by every server and through every proxy. */
import { isNeverKept } from './never-kept.ts'

const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const VALUE = /^[\t\x20-\x7e]*$/

/** Why a header cannot be in a reply that is stored and replayed; null where it can. A name may be in any case. */
export function whyNotSendable(name: string, value: unknown): string | null {
  const lower = name.toLowerCase()
  if (isNeverKept(lower)) return `${name} is never stored or replayed.`
  if (!NAME.test(lower)) return `The header ${JSON.stringify(name)} has a name that cannot be sent.`
  if (typeof value !== 'string' || !VALUE.test(value))
    return `The header ${JSON.stringify(name)} has a value that cannot be sent: a text of printable ASCII is needed.`
  return null
}
