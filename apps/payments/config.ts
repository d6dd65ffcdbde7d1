import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import { LIMITS, type Secret } from 'onlyonce'
import type { Rule } from 'onlyonce/limits'
import { type Env, Reader } from './environment.ts'
import type { Mode } from './gateway/index.ts'
import { type KeySettings, readKeySettings } from './key-settings.ts'
import { LIMITS as SERVICE_LIMITS } from './limits.ts'
import { isDecodable, refuseDevelopment, refuseShared, secretsOf, whyProduction } from './production.ts'

export { ConfigError } from './environment.ts'

export type Role = 'api' | 'worker' | 'all'

/** What the service is told from outside, read and checked once. */
export interface Config {
  /** Why this is no development; null where it may be. */
  readonly production: string | null
  /** `api` answers requests, `worker` does what no request waits for, `all` does both. */
  readonly role: Role
  readonly database: Database
  /** Null in development: then one is made, and kept in the folder. */
  readonly secret: Secret | null
  /** Seals stored replies and inputs. Null: they are stored as they are. */
  readonly encryption: Secret | null
  readonly stripe: Stripe | null
  /** What the processor signs its webhooks with; several while one is being rotated. Empty: none are taken. */
  readonly webhook_secrets: readonly string[]
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
  readonly keys: KeySettings
  readonly log_level: LogLevel
  /** Addresses and networks of proxies, whose word about a client's address is taken. */
  readonly trusted_proxies: readonly string[]
  /** Whether /docs is there. */
  readonly docs: boolean
  /** An account whose API key everybody knows. */
  readonly demo: boolean
  /** How long a start waits for a database that is away; without `--wait`, as long as it takes. */
  readonly wait_max_ms: number
  /** Where development keeps its database, its secrets and the journal of its sandbox. */
  readonly folder: string
}

export type Database =
  | { readonly kind: 'embedded' }
  | {
      readonly kind: 'url'
      readonly url: string
      readonly pool_size: number
      readonly reads_pool_size: number
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
  /**
   * Requests at once in one process, how late its event loop may be, and how long a request may have to wait for a connection to
   * the database: beyond that, new work is refused.
   */
  readonly in_flight_max: number
  readonly lag_max_ms: number
  readonly queue_max_ms: number
  /** How long a request waits for its account's rate to be counted; then it goes on uncounted, and that is logged. */
  readonly wait_max_ms: number
  /** How long a payment waits for its card and account to be counted; then it is refused. */
  readonly velocity_wait_max_ms: number
  /** Connections to the database that count, and do nothing else. */
  readonly pool_size: number
  /** New writes of an account in a day. */
  readonly quota_live: number
  readonly quota_test: number
  /** Requests of one account under way at once. */
  readonly account_at_once_max: number
  /** Tries of one address in a minute without a credential that is known. */
  readonly strangers_per_minute: number
}

export interface Stripe {
  readonly mode: Mode
  readonly secret_key: string
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

/** Reads the environment and the arguments. Throws a ConfigError that names each variable that is wrong. */
export function readConfig(env: Env, args: readonly string[] = []): Config {
  const read = new Reader(env)
  const { role, wait_max_ms } = readArguments(read, args)
  const database = readDatabase(read)
  const host = read.text('HOST') ?? '127.0.0.1'
  const stripe = readStripe(read)
  const production = whyProduction({ host, stripe, node_env: read.text('NODE_ENV') })
  const development = database.kind === 'embedded' && production === null
  const config: Config = {
    production,
    role,
    database,
    secret: read.secret('ONLYONCE_SECRET'),
    encryption: read.secret('ENCRYPTION_KEY'),
    stripe,
    webhook_secrets: readWebhookSecrets(read),
    gateway_url: readGatewayUrl(read),
    host,
    port: read.whole('PORT', 0, 65_535) ?? 3_000,
    port_given: read.text('PORT') !== null,
    ops_token: readToken(read),
    webhooks_allow_private: read.flag('WEBHOOKS_ALLOW_PRIVATE') ?? false,
    limits: readLimits(read),
    timing: readTiming(read),
    keys: readKeySettings(read),
    log_level: read.oneOf('LOG_LEVEL', LOG_LEVELS) ?? (development ? 'warn' : 'info'),
    // Its key is in the source for everybody to read, so a database that may be real never has it unasked.
    demo: read.flag('DEMO_ACCOUNT') ?? development,
    docs: read.flag('DOCS') ?? production === null,
    trusted_proxies: readProxies(read),
    wait_max_ms,
    folder: read.text('DATA_FOLDER') ?? './data',
  }
  refuseDevelopment(config, read)
  refuseShared(secretsOf(config), read)
  if (!development && config.secret === null) {
    read.wrong(
      'ONLYONCE_SECRET',
      'is needed outside of development: at least 32 bytes that all processes share.',
    )
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

function readArguments(read: Reader, args: readonly string[]): Pick<Config, 'role' | 'wait_max_ms'> {
  let wait_max_ms = Number.POSITIVE_INFINITY
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { role: { type: 'string', default: 'all' }, wait: { type: 'string' } },
    })
    const { wait } = values
    if (wait !== undefined && !/^\d{1,6}$/.test(wait)) read.wrong('--wait', 'is a whole number of seconds.')
    else if (wait !== undefined) wait_max_ms = Number(wait) * 1_000
    const role = ROLES.find((name) => name === values.role)
    if (role !== undefined) return { role, wait_max_ms }
    read.wrong('--role', `is one of ${ROLES.join(', ')}.`)
  } catch (error) {
    read.wrong('The arguments', `are not understood: ${(error as Error).message}`)
  }
  return { role: 'all', wait_max_ms }
}

function readDatabase(read: Reader): Database {
  const url = read.url('DATABASE_URL', ['postgres:', 'postgresql:'])
  const pool_size = read.whole('DATABASE_POOL_SIZE', 3, POOL_SIZE_MAX) ?? POOL_SIZE_DEFAULT
  const reads_pool_size = read.whole('READS_POOL_SIZE', 2, POOL_SIZE_MAX) ?? SERVICE_LIMITS.reads_pool_size
  const pooler = read.oneOf('DATABASE_POOLER', POOLERS) ?? 'none'
  if (url !== null && !isDecodable(url)) {
    read.wrong('DATABASE_URL', 'has a percent sign that begins no character: write %25 for the sign itself.')
  }
  return url === null ? { kind: 'embedded' } : { kind: 'url', url, pool_size, reads_pool_size, pooler }
}

function readStripe(read: Reader): Stripe | null {
  const secret_key = read.text('STRIPE_SECRET_KEY')
  if (secret_key === null) return null
  const mode = /^[sr]k_(test|live)_\w+$/.exec(secret_key)?.[1] as Mode | undefined
  if (mode === undefined) read.wrong('STRIPE_SECRET_KEY', 'begins with sk_test_ or sk_live_.')
  return { mode: mode ?? 'test', secret_key }
}

function readWebhookSecrets(read: Reader): readonly string[] {
  const secrets = read.text('STRIPE_WEBHOOK_SECRET')?.split(',') ?? []
  if (!secrets.every((secret) => /^whsec_\S+$/.test(secret))) {
    read.wrong('STRIPE_WEBHOOK_SECRET', 'begins with whsec_; several are separated by commas.')
  }
  return secrets
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
    lag_max_ms: read.whole('OVERLOAD_LAG_MS', 1, DAY_MS) ?? SERVICE_LIMITS.overload_lag_max_ms,
    queue_max_ms: read.whole('OVERLOAD_QUEUE_MS', 1, DAY_MS) ?? SERVICE_LIMITS.overload_queue_max_ms,
    wait_max_ms: read.whole('LIMITS_WAIT_MS', 1, DAY_MS) ?? LIMITS.limit_wait_max_ms,
    velocity_wait_max_ms: read.whole('VELOCITY_WAIT_MS', 1, DAY_MS) ?? SERVICE_LIMITS.velocity_wait_max_ms,
    pool_size: read.whole('LIMITS_POOL_SIZE', 1, POOL_SIZE_MAX) ?? SERVICE_LIMITS.limits_pool_size,
    quota_live: read.whole('QUOTA_LIVE', 1, RATE_MAX) ?? SERVICE_LIMITS.quota_live,
    quota_test: read.whole('QUOTA_TEST', 1, RATE_MAX) ?? SERVICE_LIMITS.quota_test,
    account_at_once_max:
      read.whole('REQUESTS_PER_ACCOUNT', 1, RATE_MAX) ?? SERVICE_LIMITS.account_at_once_max,
    strangers_per_minute:
      read.whole('STRANGERS_PER_MINUTE', 1, RATE_MAX) ?? SERVICE_LIMITS.strangers_per_minute,
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

function readProxies(read: Reader): readonly string[] {
  const networks = read.text('TRUSTED_PROXIES')?.split(',') ?? []
  const wrong = networks.some((network) => {
    const [address = '', prefix, more] = network.split('/')
    const bits = isIP(address) === 6 ? 128 : 32
    const fits = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits)
    return isIP(address) === 0 || !fits || more !== undefined
  })
  if (wrong)
    read.wrong('TRUSTED_PROXIES', 'is a list of addresses or networks, such as 10.0.0.1,10.1.0.0/16.')
  return networks
}

function readToken(read: Reader): string | null {
  const token = read.text('OPS_TOKEN')
  if (token !== null && !/^[!-~]+$/.test(token)) read.wrong('OPS_TOKEN', 'is printable ASCII without spaces.')
  if (token !== null && token.length < TOKEN_LENGTH_MIN) {
    read.wrong('OPS_TOKEN', `has at least ${TOKEN_LENGTH_MIN} characters, made by chance.`)
  }
  return token
}
