import type { Engine } from '../engine.ts'
import { formatPointer } from '../fingerprint/pointer.ts'
import { maskCardNumbers } from '../key/index.ts'
import { type Outcome, outcomeOf, type TransactionRequest } from '../protect/transaction.ts'
import { decide } from '../record/index.ts'

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

/** One thing that is wrong with a body, as a client is told it. */
export interface BodyIssue {
  /** A JSON Pointer; '' is the body itself. */
  readonly path: string
  readonly message: string
}

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

/**
 * What is known of a key whose request is not valid. A schema may have changed since the request was done: its retry is still given
 * the reply. Reads alone, so that nothing runs whatever happens meanwhile. Null where the request would run.
 */
export async function alreadyAnswered<Tx>(
  engine: Pick<Engine<Tx>, 'wouldRun' | 'store'>,
  request: TransactionRequest,
): Promise<Outcome | null> {
  const would_run = engine.wouldRun(request)
  if (would_run !== false && (await would_run)) return null
  const seen = await engine.store.look(request.id)
  if (seen === null || seen.record.state === 'expired') return null
  const { fingerprint, owner, trace } = request
  const claimant = { kind: 'transaction', attempt_id: '', owner, fingerprint, trace } as const
  const same_request = request.matches(seen.record.fingerprint)
  const claim = { claimant, same_request, lease_ms: 0, takeover: 'doubt' } as const
  const decision = decide(seen.record, claim, seen.now)
  return decision.kind === 'run' ? null : outcomeOf(decision)
}
