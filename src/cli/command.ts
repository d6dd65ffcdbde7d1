/** What a command is: its door, as help, completion and the docs tell it, and what it does. */
import type { Values } from './arguments.ts'
import type { ExitCode } from './exit.ts'
import type { Io, Output } from './io.ts'
import type { Settings } from './settings.ts'

export interface Option {
  /** Without the dashes. */
  readonly name: string
  /** What stands for its value in the help; a flag has none. */
  readonly value?: string
  readonly text: string
  /** It may be given more than once. */
  readonly many?: true
  /** The only values that it takes. */
  readonly choices?: readonly string[]
}

/** What a command is called with, checked for names and forms. */
export interface Call {
  readonly values: Values
  readonly given: readonly string[]
  readonly io: Io
  readonly output: Output
  readonly settings: Settings
}

export interface Command {
  /** One word, or two: `outbox lag`. */
  readonly name: string
  readonly summary: string
  /** The names of its arguments, in their order. */
  readonly takes: readonly string[]
  /** What one has to know about it, a paragraph each. */
  readonly about: readonly string[]
  readonly options: readonly Option[]
  readonly examples: readonly string[]
  run(call: Call): Promise<ExitCode>
}

/** What every command takes. */
export const COMMON: readonly Option[] = [
  {
    name: 'database',
    value: '<url>',
    text: 'The database, else ONLYONCE_DATABASE_URL, else DATABASE_URL. A password is better left to PGPASSWORD or ~/.pgpass.',
  },
  {
    name: 'schema',
    value: '<name>',
    text: 'The schema of the library. Default: ONLYONCE_SCHEMA, else onlyonce.',
  },
  {
    name: 'pooler',
    value: '<kind>',
    choices: ['none', 'transaction'],
    text: 'transaction behind PgBouncer in transaction mode. Default: none.',
  },
  { name: 'json', text: 'Print JSON for programs, and errors as JSON on stderr.' },
  { name: 'help', text: 'Print this help.' },
]

/** For decisions: who decides, and why. Both are kept for ever in the audit. */
export const SIGNED: readonly Option[] = [
  { name: 'actor', value: '<name>', text: 'Who decides. Required; kept for ever.' },
  { name: 'reason', value: '<text>', text: 'Why. Required; kept for ever.' },
  {
    name: 'fence',
    value: '<number>',
    text: 'The fence that you saw: refused where the record has another by now.',
  },
]

export const YES: Option = { name: 'yes', text: 'Do not ask. Needed where no terminal is there to ask at.' }

/** The keys that replies are sealed with, for commands that write or open them. */
export const ENCRYPTION: Option = {
  name: 'encryption-file',
  value: '<path>',
  text: 'Read the encryption keys from a file in place of ONLYONCE_ENCRYPTION.',
}

export const SECRET: Option = {
  name: 'secret-file',
  value: '<path>',
  text: 'Read the secret from a file in place of ONLYONCE_SECRET.',
}
