/** How the command ends, and why. Scripts depend on these numbers: they never change their meaning. */
import { type ErrorCode, OnlyonceError } from '../core/errors.ts'
import { isOfClass, memberOf } from '../core/thrown.ts'
import { isAway, sqlState } from '../store/postgres/classify.ts'
import { startTrouble, troubleDetail } from '../store/postgres/trouble.ts'

export const EXIT = {
  ok: 0,
  /** Something was found, or what was asked for was refused. */
  found: 1,
  usage: 2,
  away: 3,
  unusable: 4,
  fault: 70,
  interrupted: 130,
  terminated: 143,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** What docs and help say about each of them. */
export const EXIT_MEANINGS: readonly (readonly [ExitCode, string])[] = [
  [EXIT.ok, 'done, and nothing was found wrong'],
  [EXIT.found, 'something was found, or what was asked for was refused; nothing was changed by a refusal'],
  [
    EXIT.usage,
    'the command was called wrongly: arguments, settings, secrets, or no --yes where it is needed',
  ],
  [EXIT.away, 'the database cannot be reached, or does not answer in time; try again'],
  [EXIT.unusable, 'the database cannot be used as it is: password, rights, schema'],
  [EXIT.fault, 'an error that onlyonce does not know'],
  [EXIT.interrupted, 'ended by SIGINT; what was done until then stands'],
  [EXIT.terminated, 'ended by SIGTERM; what was done until then stands'],
]

/** An end of the command that is no surprise, with the sentence that is told on stderr. */
export class Ended extends Error {
  readonly exitCode: ExitCode
  readonly code: string

  constructor(exitCode: ExitCode, code: string, message: string) {
    super(message)
    this.exitCode = exitCode
    this.code = code
  }
}

/** The command was called wrongly. */
export function usage(message: string): Ended {
  return new Ended(EXIT.usage, 'usage', message)
}

const BY_CODE: Readonly<Partial<Record<ErrorCode, ExitCode>>> = {
  store_unavailable: EXIT.away,
  pool_exhausted: EXIT.away,
  store_misconfigured: EXIT.unusable,
  schema_missing: EXIT.unusable,
  schema_outdated: EXIT.unusable,
  schema_too_new: EXIT.unusable,
  schema_changed: EXIT.unusable,
  statement_not_prepared: EXIT.unusable,
  option_invalid: EXIT.usage,
  decision_invalid: EXIT.usage,
  secret_invalid: EXIT.usage,
  account_invalid: EXIT.usage,
  operation_invalid: EXIT.usage,
  value_not_serializable: EXIT.usage,
  value_too_large: EXIT.usage,
  key_ring_incomplete: EXIT.usage,
  seal_key_unknown: EXIT.usage,
}

/** What is told of an error, and how the command ends after it. */
export interface Told {
  readonly exitCode: ExitCode
  readonly code: string
  readonly message: string
}

export function tellError(error: unknown): Told {
  if (isRefusedByPooler(error)) return { exitCode: EXIT.usage, code: 'usage', message: POOLER_REFUSES }
  if (isOfClass(error, Ended)) return { exitCode: error.exitCode, code: error.code, message: error.message }
  if (error instanceof OnlyonceError) return tellOurs(error)
  const state = sqlState(error)
  const message = `${memberOf(error, 'message') ?? 'What was thrown has no message.'}`
  if (state === '42501') {
    return {
      exitCode: EXIT.unusable,
      code: state,
      message: `The role lacks a right: ${message} (42501). ${GRANTS}`,
    }
  }
  const started = startTrouble(error)
  if (started instanceof OnlyonceError) return tellOurs(started)
  const detail = troubleDetail(error)
  const node = memberOf(error, 'code')
  if (detail !== undefined || ((state !== null || typeof node === 'string') && isAway(error))) {
    const why = detail ?? `The database cannot be reached: ${message}`
    return { exitCode: EXIT.away, code: state ?? `${node ?? 'store_unavailable'}`, message: why }
  }
  if (state !== null) {
    return { exitCode: EXIT.found, code: state, message: `The database refuses: ${message} (${state})` }
  }
  return { exitCode: EXIT.fault, code: 'fault', message }
}

/** PgBouncer, unless it is told to ignore them. */
function isRefusedByPooler(error: unknown): boolean {
  const said = [error, memberOf(error, 'cause')].map((one) => `${memberOf(one, 'message')}`)
  return said.some((message) => message.includes('unsupported startup parameter'))
}

const POOLER_REFUSES =
  'A pooler in front of the database takes no settings at the start of a connection: give --pooler transaction.'

const GRANTS = 'See `onlyonce grants`.'

const ADVICE: Readonly<Partial<Record<ErrorCode, string>>> = {
  schema_missing: 'Run `onlyonce migrate` with a role that may create tables.',
  schema_outdated: 'Run `onlyonce migrate` with a role that may change tables.',
  store_misconfigured: 'Run `onlyonce doctor`.',
  seal_key_unknown: 'Give the ring in ONLYONCE_ENCRYPTION.',
}

function tellOurs(error: OnlyonceError): Told {
  const { code } = error
  const exitCode = BY_CODE[code] ?? (/^key_/.test(code) ? EXIT.usage : EXIT.found)
  const advice = ADVICE[code]
  return { exitCode, code, message: advice === undefined ? error.message : `${error.message} ${advice}` }
}
