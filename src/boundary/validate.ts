import { formatPointer } from '../fingerprint/pointer.ts'
import type { InvalidIssue } from '../invalid.ts'
import { maskCardNumbers } from '../key/index.ts'

/**
 * What checks a body: a schema of zod, valibot, arktype or any other library that follows Standard Schema, version 1. A copy of the
 * part of its interface that is used here.
 */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult | Promise<SchemaResult>
  }
}

type SchemaResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** One thing that is wrong with a body. */
export type BodyIssue = InvalidIssue

/** What a schema made of a body: the value, or what is wrong with it. */
export type Validated = { readonly value: unknown } | { readonly issues: readonly BodyIssue[] }

export function isStandardSchema(given: unknown): given is StandardSchema {
  if (given === null || (typeof given !== 'object' && typeof given !== 'function')) return false
  const standard = (given as Partial<StandardSchema>)['~standard']
  return standard?.version === 1 && typeof standard.validate === 'function'
}

/** What the schema itself throws goes to the framework, like what a handler throws; nothing has been claimed. */
export async function validate(schema: StandardSchema, value: unknown): Promise<Validated> {
  const result = await schema['~standard'].validate(value)
  if (result.issues === undefined) return { value: result.value }
  return { issues: result.issues.slice(0, ISSUES_MAX).map((issue) => issueOf(issue, value)) }
}

const ISSUES_MAX = 20
const TEXT_LENGTH_MAX = 200

function issueOf({ message, path = [] }: SchemaIssue, value: unknown): BodyIssue {
  const tokens = path.map((token) => String(typeof token === 'object' ? token.key : token))
  return { path: shown(formatPointer(tokens)), message: echoes(message, value) ? NOT_VALID : shown(message) }
}

/** Masked before it is cut: half a card number is none that could be recognised. */
function shown(text: string): string {
  return maskCardNumbers(`${text}`).slice(0, TEXT_LENGTH_MAX)
}

const NOT_VALID = 'It is not valid.'

/**
 * Whether a message repeats something that the client has sent. Some libraries quote what they received, and an answer is logged in
 * more places than a body is.
 */
function echoes(message: string, value: unknown): boolean {
  const words = new Set(`${message}`.split(/[\s"'`()[\]{}<>=,:;]+/))
  const repeats = (text: string) => words.has(text) || (text.length > 3 && message.includes(text))
  if (typeof value === 'string') return value.length > 1 && repeats(value)
  if (typeof value === 'number') return repeats(`${value}`)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(
    ([name, member]) => (!PLAIN_NAME.test(name) && repeats(name)) || echoes(message, member),
  )
}

/** Names like these are those of a schema, and a message may say them. */
const PLAIN_NAME = /^[A-Za-z_][A-Za-z_-]{0,63}$/
