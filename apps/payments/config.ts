import { parseArgs } from 'node:util'
import { LIMITS, type Secret } from 'onlyonce'
import type { Rule } from 'onlyonce/limits'
import type { Mode } from './gateway/index.ts'
import { LIMITS as SERVICE_LIMITS } from './limits.ts'

export type Role = 'api' | 'worker' | 'all'

/** What the service is told from outside, read and checked once. */
export interface Config {
  /** `api` answers requests, `worker` does what nobody waits for, `all` does both. */
  readonly role: Role
  readonly database: Database
  /** Null in development: then one is made, and kept in the folder. */
  readonly secret: Secret | null
  /** Seals stored replies and inputs. Null: they are stored as they are. */
  readonly encryption: Secret | null
  readonly stripe: Stripe | null
  /** A sandbox processor that runs already. Null: where no Stripe is set up, one is started. */
  readonly gateway_url: string | null
  readonly host: string
  readonly port: number
  /** Whether a port was named: a worker listens only then. */
  readonly port_given: boolean
  /** Opens /ops and /metrics. Null: nobody may, or, in development, one is made and kept in the folder. */
  readonly ops_token: string | null
  readonly webhooks_allow_private: boolean
  readonly limits: LimitsConfig
  readonly timing: Timing
  readonly log_level: LogLevel
  /** An account whose API key everybody knows. */
  readonly demo: boolean
  /** Where development keeps its database, its secrets and the journal of its sandbox. */
  readonly folder: string
}

export type Database =
  | { readonly kind: 'embedded' }
  | {
      readonly kind: 'url'
      readonly url: string
      readonly pool_size: number
      readonly pooler: 'none' | 'transaction'
    }

/** How long things may take. */
export interface Timing {
  /** How long the process that works on a payment is presumed to live without a word. */
  readonly lease_ms: number
  /** How long one call to the processor may take; at most two thirds of the lease. */
  readonly gateway_timeout_ms: number
  /** How long its lookups may miss what was done. Null: as the adapter knows it. */
  readonly gateway_settle_ms: number | null
  /** How long a client has to come back by itself after a lease ran out. */
  readonly grace_ms: number
  /** When somebody looks at what is in doubt, each counted from the look before. Null: as the library does. */
  readonly reconcile_after_ms: readonly number[] | null
}

/** How much is let through. */
export interface LimitsConfig {
  /** Requests of an account in a second. */
  readonly rate_live: number
  readonly rate_test: number
  /** How often one card of an account, and an account, may be charged. */
  readonly velocity_card: readonly Rule[]
  readonly velocity_account: readonly Rule[]
  /** Requests at once in one process. */
  readonly in_flight_max: number
}

export interface Stripe {
  readonly mode: Mode
  readonly secret_key: string
  readonly webhook_secret: string | null
}

const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

const ROLES = ['api', 'worker', 'all'] as const
const POOLERS = ['none', 'transaction'] as const
const TOKEN_LENGTH_MIN = 24
const POOL_SIZE_DEFAULT = 10
const POOL_SIZE_MAX = 1_000

const RATE_MAX = 1_000_000
const MINUTE_MS = 60_000
const DAY_MS = 1_440 * MINUTE_MS
/** A person pays a few times an hour with one card; a card that is tested by thieves is tried hundreds of times. */
const VELOCITY_CARD: readonly Rule[] = [
  { points: 30, per_ms: MINUTE_MS },
  { points: 300, per_ms: DAY_MS },
]
const VELOCITY_ACCOUNT: readonly Rule[] = [{ points: 5_000, per_ms: MINUTE_MS }]

/** What is wrong with the configuration: all of it, and by name. */
export class ConfigError extends Error {
  constructor(problems: readonly string[]) {
    super(`The configuration is wrong.\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    this.name = 'ConfigError'
  }
}

type Env = Readonly<Record<string, string | undefined>>

/** Reads the environment and the arguments. Throws a ConfigError that names each variable that is wrong. */
export function readConfig(env: Env, args: readonly string[] = []): Config {
  const read = new Reader(env)
  const role = readRole(read, args)
  const database = readDatabase(read)
  const development = database.kind === 'embedded'
  const config: Config = {
    role,
    database,
    secret: read.secret('ONLYONCE_SECRET'),
    encryption: read.secret('ENCRYPTION_KEY'),
    stripe: readStripe(read),
    gateway_url: readGatewayUrl(read),
    host: read.text('HOST') ?? '127.0.0.1',
    port: read.whole('PORT', 0, 65_535) ?? 3_000,
    port_given: read.text('PORT') !== null,
    ops_token: readToken(read),
    webhooks_allow_private: read.flag('WEBHOOKS_ALLOW_PRIVATE') ?? false,
    limits: readLimits(read),
    timing: readTiming(read),
    log_level: read.oneOf('LOG_LEVEL', LOG_LEVELS) ?? (development ? 'warn' : 'info'),
    // Its key is in the source for everybody to read, so a database that may be real never has it unasked.
    demo: read.flag('DEMO_ACCOUNT') ?? development,
    folder: read.text('DATA_FOLDER') ?? './data',
  }
  if (!development && config.secret === null) {
    read.wrong('ONLYONCE_SECRET', 'is needed with DATABASE_URL: at least 32 bytes that all processes share.')
  }
  if (config.stripe !== null && config.gateway_url !== null) {
    read.wrong('GATEWAY_URL', 'names a sandbox, and STRIPE_SECRET_KEY a real processor. Set one of them.')
  }
  if (role !== 'all' && config.stripe === null && config.gateway_url === null) {
    read.wrong('STRIPE_SECRET_KEY', 'or GATEWAY_URL is needed: processes side by side share one processor.')
  }
  read.finish()
  return config
}

function readRole(read: Reader, args: readonly string[]): Role {
  try {
    const { values } = parseArgs({ args: [...args], options: { role: { type: 'string', default: 'all' } } })
    const role = ROLES.find((name) => name === values.role)
    if (role !== undefined) return role
    read.wrong('--role', `is one of ${ROLES.join(', ')}.`)
  } catch (error) {
    read.wrong('The arguments', `are not understood: ${(error as Error).message}`)
  }
  return 'all'
}

function readDatabase(read: Reader): Database {
  const url = read.url('DATABASE_URL', ['postgres:', 'postgresql:'])
  const pool_size = read.whole('DATABASE_POOL_SIZE', 3, POOL_SIZE_MAX) ?? POOL_SIZE_DEFAULT
  const pooler = read.oneOf('DATABASE_POOLER', POOLERS) ?? 'none'
  return url === null ? { kind: 'embedded' } : { kind: 'url', url, pool_size, pooler }
}

function readStripe(read: Reader): Stripe | null {
  const secret_key = read.text('STRIPE_SECRET_KEY')
  const webhook_secret = read.text('STRIPE_WEBHOOK_SECRET')
  if (webhook_secret !== null && !webhook_secret.startsWith('whsec_')) {
    read.wrong('STRIPE_WEBHOOK_SECRET', 'begins with whsec_.')
  }
  if (secret_key === null) return null
  const mode = /^[sr]k_(test|live)_\w+$/.exec(secret_key)?.[1] as Mode | undefined
  if (mode === undefined) read.wrong('STRIPE_SECRET_KEY', 'begins with sk_test_ or sk_live_.')
  return { mode: mode ?? 'test', secret_key, webhook_secret }
}

function readGatewayUrl(read: Reader): string | null {
  const url = read.url('GATEWAY_URL', ['http:', 'https:'])
  const plain = url !== null && URL.canParse(url) && new URL(url).protocol === 'http:'
  if (plain && !/^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname)) {
    read.wrong('GATEWAY_URL', 'begins with http:// only where the sandbox is on this machine.')
  }
  return url
}

function readLimits(read: Reader): LimitsConfig {
  return {
    rate_live: read.whole('RATE_LIMIT_LIVE', 1, RATE_MAX) ?? 100,
    rate_test: read.whole('RATE_LIMIT_TEST', 1, RATE_MAX) ?? 25,
    velocity_card: read.rules('VELOCITY_CARD') ?? VELOCITY_CARD,
    velocity_account: read.rules('VELOCITY_ACCOUNT') ?? VELOCITY_ACCOUNT,
    in_flight_max: read.whole('REQUESTS_AT_ONCE', 1, RATE_MAX) ?? 1_000,
  }
}

function readTiming(read: Reader): Timing {
  const lease_ms = read.whole('LEASE_MS', 100, DAY_MS) ?? LIMITS.lease_ms
  const gateway_timeout_ms = read.whole('GATEWAY_TIMEOUT_MS', 1, DAY_MS) ?? LIMITS.call_timeout_ms
  if (gateway_timeout_ms * 3 > lease_ms * 2) {
    read.wrong('GATEWAY_TIMEOUT_MS', 'is at most two thirds of LEASE_MS: a call has to end before its lease.')
  }
  return {
    lease_ms,
    gateway_timeout_ms,
    gateway_settle_ms: read.whole('GATEWAY_SETTLE_MS', 1, DAY_MS),
    grace_ms: read.whole('GRACE_MS', 1, DAY_MS) ?? LIMITS.grace_ms,
    reconcile_after_ms: read.seconds('RECONCILE_AFTER_SECONDS'),
  }
}

function readToken(read: Reader): string | null {
  const token = read.text('OPS_TOKEN')
  if (token !== null && !/^[!-~]+$/.test(token)) read.wrong('OPS_TOKEN', 'is printable ASCII without spaces.')
  if (token !== null && token.length < TOKEN_LENGTH_MIN) {
    read.wrong('OPS_TOKEN', `has at least ${TOKEN_LENGTH_MIN} characters, made by chance.`)
  }
  return token
}

/** Takes variables one by one and notes what is wrong with them. It never repeats a value: it may be a secret. */
class Reader {
  readonly #env: Env
  readonly #problems: string[] = []

  constructor(env: Env) {
    this.#env = env
  }

  wrong(name: string, what: string): void {
    this.#problems.push(`${name} ${what}`)
  }

  finish(): void {
    if (this.#problems.length > 0) throw new ConfigError(this.#problems)
  }

  /** An empty variable counts as none: that is what a template leaves of a missing one. */
  text(name: string): string | null {
    return this.#env[name] || null
  }

  whole(name: string, min: number, max: number): number | null {
    const text = this.text(name)
    if (text === null) return null
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(value >= min && value <= max)) this.wrong(name, `is a whole number from ${min} to ${max}.`)
    return value
  }

  flag(name: string): boolean | null {
    const text = this.text(name)
    if (text === null) return null
    if (!['1', 'true', '0', 'false'].includes(text)) this.wrong(name, 'is 1 or true, 0 or false.')
    return text === '1' || text === 'true'
  }

  oneOf<T extends string>(name: string, allowed: readonly T[]): T | null {
    const text = this.text(name)
    const found = allowed.find((value) => value === text)
    if (text !== null && found === undefined) this.wrong(name, `is one of ${allowed.join(', ')}.`)
    return found ?? null
  }

  /** `30/60,300/86400`: thirty in a minute, and three hundred in a day. */
  rules(name: string): readonly Rule[] | null {
    const text = this.text(name)
    if (text === null) return null
    const parts = text.split(',').map((part) => /^(\d{1,7})\/(\d{1,7})$/.exec(part))
    const fits = parts.length <= SERVICE_LIMITS.velocity_rules_max && parts.every((part) => part !== null)
    if (!fits) this.wrong(name, 'is a list of points/seconds, such as 30/60,300/86400.')
    return fits ? parts.map((part) => ({ points: Number(part![1]), per_ms: Number(part![2]) * 1_000 })) : []
  }

  /** `60,300,3600`. */
  seconds(name: string): readonly number[] | null {
    const text = this.text(name)
    if (text === null) return null
    const fits = /^\d{1,6}(?:\.\d{1,3})?(?:,\d{1,6}(?:\.\d{1,3})?)*$/.test(text)
    if (!fits) this.wrong(name, 'is a list of seconds, such as 60,300,3600.')
    return fits ? text.split(',').map((part) => Number(part) * 1_000) : null
  }

  url(name: string, protocols: readonly string[]): string | null {
    const text = this.text(name)
    if (text === null) return null
    if (!URL.canParse(text) || !protocols.includes(new URL(text).protocol)) {
      this.wrong(name, `is an address that begins with ${protocols.join('// or ')}//.`)
    }
    return text
  }

  /** A secret, or a ring of them: `{"current":"b","keys":{"a":"…","b":"…"}}`. */
  secret(name: string): Secret | null {
    const text = this.text(name)
    if (text === null) return null
    const ring = text.startsWith('{') ? parseRing(text) : { current: 'default', keys: { default: text } }
    if (ring === null || !Object.hasOwn(ring.keys, ring.current)) {
      this.wrong(name, 'begins with { and is no ring: {"current":"b","keys":{"a":"…","b":"…"}}.')
      return null
    }
    const short = Object.values(ring.keys).some(
      (key) => Buffer.byteLength(key) < LIMITS.secret_size_min_bytes,
    )
    if (short) this.wrong(name, `has at least ${LIMITS.secret_size_min_bytes} bytes.`)
    return text.startsWith('{') ? ring : text
  }
}

function parseRing(text: string): { current: string; keys: Record<string, string> } | null {
  try {
    const { current, keys } = JSON.parse(text)
    const values = Object.values(keys)
    if (typeof current === 'string' && values.every((value) => typeof value === 'string')) {
      return { current, keys }
    }
  } catch {}
  return null
}
