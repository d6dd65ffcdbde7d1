/** Where the database is, and the secrets: from options and the environment. No value of a secret is ever in a message. */
import { readFileSync } from 'node:fs'
import { type KeyPurpose, type KeyRing, keyRing, type Secret } from '../core/ring.ts'
import type { Values } from './arguments.ts'
import { usage } from './exit.ts'
import type { Io, Output } from './io.ts'

export interface Settings {
  readonly schema: string
  readonly pooler: 'none' | 'transaction'
  /** Null where none is named. */
  readonly databaseUrl: string | null
  /** Of ONLYONCE_SECRET, or a file; null where there is none. */
  secret(): Secret | null
  /** Of ONLYONCE_ENCRYPTION, or a file; null where there is none. */
  encryption(): Secret | null
}

/** Masks what the environment holds, before anything can be printed. */
export function hideSecrets({ env }: Io, output: Output): void {
  const passwords = [env.ONLYONCE_DATABASE_URL, env.DATABASE_URL].flatMap((url) => passwordsIn(url ?? null))
  const secrets = [env.ONLYONCE_SECRET, env.ONLYONCE_ENCRYPTION].flatMap((text) => secretsIn(text ?? ''))
  for (const hidden of [env.PGPASSWORD ?? '', ...passwords, ...secrets]) output.hide(hidden)
}

export function readSettings(values: Values, io: Io, output: Output): Settings {
  const { env } = io
  const databaseUrl = values.text('database') ?? env.ONLYONCE_DATABASE_URL ?? env.DATABASE_URL ?? null
  for (const hidden of passwordsIn(databaseUrl)) output.hide(hidden)
  const secretOf = (variable: string, option: string) => readSecret(variable, option, values, env, output)
  return {
    databaseUrl: databaseUrl === '' ? null : databaseUrl,
    schema: values.text('schema') ?? (env.ONLYONCE_SCHEMA || 'onlyonce'),
    pooler: (values.text('pooler') as Settings['pooler'] | undefined) ?? 'none',
    secret: () => secretOf('ONLYONCE_SECRET', 'secret-file'),
    encryption: () => secretOf('ONLYONCE_ENCRYPTION', 'encryption-file'),
  }
}

export function requireDatabase({ databaseUrl }: Settings): string {
  if (databaseUrl !== null) return databaseUrl
  throw usage('No database is named. Set ONLYONCE_DATABASE_URL or DATABASE_URL, or give --database.')
}

/** The ring of a secret that has to be there. */
export function requireRing(secret: Secret | null, purpose: KeyPurpose): KeyRing {
  if (secret !== null) return keyRing(secret, purpose)
  const [variable, option] =
    purpose === 'fingerprint'
      ? ['ONLYONCE_SECRET', '--secret-file']
      : ['ONLYONCE_ENCRYPTION', '--encryption-file']
  throw usage(
    `${variable} is not set. Give what the service has: one secret, or a ring {"current":"b","keys":{"a":"…","b":"…"}}; ${option} reads it from a file.`,
  )
}

/** A secret, or a ring of them as JSON: the same forms as in the environment of the payment service. */
function readSecret(
  variable: string,
  option: string,
  values: Values,
  env: Io['env'],
  output: Output,
): Secret | null {
  const path = values.text(option)
  const text = path === undefined ? env[variable] : readFile(option, path)
  if (text === undefined || text === '') return null
  const secret = text.startsWith('{') ? parseRing(path === undefined ? variable : `--${option}`, text) : text
  for (const one of typeof secret === 'string' ? [secret] : Object.values(secret.keys)) output.hide(one)
  return secret
}

function parseRing(name: string, text: string): { current: string; keys: Record<string, string> } {
  try {
    const { current, keys } = JSON.parse(text)
    const isRing = typeof current === 'string' && typeof keys === 'object' && keys !== null
    if (isRing && Object.values(keys).every((key) => typeof key === 'string')) return { current, keys }
  } catch {}
  throw usage(`${name} begins with { and is no ring: {"current":"b","keys":{"a":"…","b":"…"}}.`)
}

/** Without the line end that editors leave: the variable of the service has none either. */
function readFile(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw usage(`--${option} cannot be read.`)
  }
}

function passwordsIn(url: string | null): string[] {
  try {
    const { password, searchParams } = new URL(url ?? '')
    return [password, decodeURIComponent(password), searchParams.get('password') ?? '']
  } catch {
    return []
  }
}

/** The secrets of a ring, or the text itself, which may be a ring with a fault in it. */
function secretsIn(text: string): string[] {
  try {
    return [text, ...Object.values<unknown>(JSON.parse(text).keys).filter((key) => typeof key === 'string')]
  } catch {
    return [text]
  }
}
