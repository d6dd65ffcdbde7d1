import type { InvalidIssue } from '../core/invalid.ts'
import type { SchemaIssue, StandardSchema } from '../core/standard-schema.ts'
import { formatPointer } from '../fingerprint/pointer.ts'
import { maskCardNumbers } from '../key/index.ts'

export { isStandardSchema, type StandardSchema } from '../core/standard-schema.ts'

/** One thing that is wrong with a body. */
export type BodyIssue = InvalidIssue

/** What a schema made of a body: the value, or what is wrong with it. */
export type Validated = { readonly value: unknown } | { readonly issues: readonly BodyIssue[] }

/** What the schema itself throws goes to the framework, like what a handler throws; nothing has been claimed. */
export async function validate(schema: StandardSchema, value: unknown): Promise<Validated> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return { value: result.value }
  const texts = textsOf(value)
  return { issues: result.issues.slice(0, ISSUES_MAX).map((issue) => issueOf(issue, texts)) }
}

const ISSUES_MAX = 20
const TEXT_LENGTH_MAX = 200
/** A message of a schema is a sentence. A longer one most likely quotes what was sent, and looking costs time for each character. */
const MESSAGE_LENGTH_MAX = 1_000
/** So many members of a body are compared with the messages. */
const TEXTS_MAX = 10_000

function issueOf({ message, path = [] }: SchemaIssue, texts: ReadonlySet<string> | null): BodyIssue {
  const tokens = path.map((token) => String(typeof token === 'object' ? token.key : token))
  const said = `${message}`
  const safe = texts !== null && said.length <= MESSAGE_LENGTH_MAX && !echoes(said, texts)
  return { path: shown(formatPointer(tokens)), message: safe ? shown(said) : NOT_VALID }
}

/** Masked before it is cut: half a card number is none that could be recognised. */
function shown(text: string): string {
  return maskCardNumbers(`${text}`).slice(0, TEXT_LENGTH_MAX)
}

const NOT_VALID = 'It is not valid.'

/**
 * Whether a message repeats something that the client has sent. Some libraries quote what they received, and an answer is logged in
 * more places than a body is. A client chooses how much it sends: most texts are told from the message by their first four characters.
 */
function echoes(message: string, texts: ReadonlySet<string>): boolean {
  const words = new Set(message.split(/[\s"'`()[\]{}<>=,:;]+/))
  const beginnings = new Set<string>()
  for (let at = 0; at + BEGINNING <= message.length; at += 1)
    beginnings.add(message.slice(at, at + BEGINNING))
  for (const text of texts) {
    if (words.has(text)) return true
    if (text.length < BEGINNING || text.length > message.length) continue
    if (beginnings.has(text.slice(0, BEGINNING)) && message.includes(text)) return true
  }
  return false
}

const BEGINNING = 4

/** What a message could repeat of a body, gathered once for all messages; null where it is too much to compare. */
function textsOf(value: unknown): ReadonlySet<string> | null {
  const texts = new Set<string>()
  const left: unknown[] = [value]
  for (let seen = 0; left.length > 0; seen += 1) {
    if (seen > TEXTS_MAX) return null
    const one = left.pop()
    if (typeof one === 'string' && one.length > 1) texts.add(one)
    else if (typeof one === 'number') texts.add(`${one}`)
    else if (typeof one === 'object' && one !== null) {
      for (const [name, member] of Object.entries(one)) {
        if (!PLAIN_NAME.test(name)) texts.add(name)
        left.push(member)
      }
    }
  }
  return texts
}

/** Names like these are those of a schema, and a message may say them. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z_-]{0,63}$/
