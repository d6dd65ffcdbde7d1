import { isIP } from 'node:net'
import { parseArgs } from 'node:util'
import type { Secret } from 'onlyonce'
import { LIMITS } from 'onlyonce/limits'
import type { Rule } from 'onlyonce/rate-limits'
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
  readonly webhookSecrets: readonly string[]
  /** A sandbox processor that runs already. Null: where no Stripe is set up, one is started. */
  readonly gatewayUrl: string | null
  readonly host: string
  readonly port: number
  /** Whether a port was named: a worker listens only then. */
  readonly portGiven: boolean
  /** Opens /ops and /metrics. Null: nobody may, or, in development, one is made and kept in the folder. */
  readonly opsToken: string | null
  readonly webhooksAllowPrivate: boolean
  readonly limits: LimitsConfig
  readonly timing: Timing
  readonly keys: KeySettings
  readonly logLevel: LogLevel
  /** Addresses and networks of proxies, whose word about a client's address is taken. */
  readonly trustedProxies: readonly string[]
  /** Whether /docs is there. */
  readonly docs: boolean
  /** An account whose API key everybody knows. */
  readonly demo: boolean
  /** Whether the checkout is served at `/`: in development, with the demo account and a sandbox processor of this process. */
  readonly checkout: boolean
  /** How long a start waits for a database that is away; without `--wait`, as long as it takes. */
  readonly waitMaxMs: number
  /** Where development keeps its database, its secrets and the journal of its sandbox. */
  readonly folder: string
}

export type Database =
  | { readonly kind: 'embedded' }
  | {
      readonly kind: 'url'
      readonly url: string
      readonly poolSize: number
      readonly readsPoolSize: number
      readonly pooler: 'none' | 'transaction'
    }

/** How long things may take. */
export interface Timing {
  /** How long the process that works on a payment is presumed to live without a word. */
  readonly leaseMs: number
  /** How long one call to the processor may take; at most two thirds of the lease. */
  readonly gatewayTimeoutMs: number
  /** How long its lookups may miss what was done. Null: as the adapter knows it. */
  readonly gatewayVisibleWithinMs: number | null
  /** How long a client has to come back by itself after a lease ran out. */
  readonly graceMs: number
  /** When somebody looks at what is in doubt, each counted from the look before. Null: as the library does. */
  readonly reconcileAfterMs: readonly number[] | null
}

/** How much is let through. */
export interface LimitsConfig {
  /** Requests of an account in a second. */
  readonly rateLive: number
  readonly rateTest: number
  /** How often one card of an account, and an account, may be charged. */
  readonly velocityCard: readonly Rule[]
  readonly velocityAccount: readonly Rule[]
  /**
   * Requests at once in one process, how late its event loop may be, and how long a request may have to wait for a connection to
   * the database: beyond that, new work is refused.
   */
  readonly inFlightMax: number
  readonly lagMaxMs: number
  readonly queueMaxMs: number
  /** How long a request waits for its account's rate to be counted; then it goes on uncounted, and that is logged. */
  readonly waitMaxMs: number
  /** How long a payment waits for its card and account to be counted; then it is refused. */
  readonly velocityWaitMaxMs: number
  /** Connections to the database that count, and do nothing else. */
  readonly poolSize: number
  /** New writes of an account in a day. */
  readonly quotaLive: number
  readonly quotaTest: number
  /** Requests of one account under way at once. */
  readonly accountAtOnceMax: number
  /** Tries of one address in a minute without a credential that is known. */
  readonly strangersPerMinute: number
}

export interface Stripe {
  readonly mode: Mode
  readonly secretKey: string
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
  { points: 30, perMs: MINUTE_MS },
  { points: 300, perMs: DAY_MS },
]
const VELOCITY_ACCOUNT: readonly Rule[] = [{ points: 5_000, perMs: MINUTE_MS }]

/** Reads the environment and the arguments. Throws a ConfigError that names each variable that is wrong. */
export function readConfig(env: Env, args: readonly string[] = []): Config {
  const read = new Reader(env)
  const { role, waitMaxMs } = readArguments(read, args)
  const database = readDatabase(read)
  const host = read.text('HOST') ?? '127.0.0.1'
  const stripe = readStripe(read)
  const production = whyProduction({ host, stripe, nodeEnv: read.text('NODE_ENV') })
  const development = database.kind === 'embedded' && production === null
  // Its key is in the source for everybody to read, so a database that may be real never has it unasked.
  const demo = read.flag('DEMO_ACCOUNT') ?? development
  const gatewayUrl = readGatewayUrl(read)
  const config: Config = {
    production,
    role,
    database,
    secret: read.secret('ONLYONCE_SECRET'),
    encryption: read.secret('ENCRYPTION_KEY'),
    stripe,
    webhookSecrets: readWebhookSecrets(read),
    gatewayUrl,
    host,
    port: read.whole('PORT', 0, 65_535) ?? 3_000,
    portGiven: read.text('PORT') !== null,
    opsToken: readToken(read),
    webhooksAllowPrivate: read.flag('WEBHOOKS_ALLOW_PRIVATE') ?? false,
    limits: readLimits(read),
    timing: readTiming(read),
    keys: readKeySettings(read),
    logLevel: read.oneOf('LOG_LEVEL', LOG_LEVELS) ?? (development ? 'warn' : 'info'),
    demo,
    checkout: demo && production === null && stripe === null && gatewayUrl === null,
    docs: read.flag('DOCS') ?? production === null,
    trustedProxies: readProxies(read),
    waitMaxMs,
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
  if (config.stripe !== null && config.gatewayUrl !== null) {
    read.wrong('GATEWAY_URL', 'names a sandbox, and STRIPE_SECRET_KEY a real processor. Set one of them.')
  }
  if (role !== 'all' && config.stripe === null && config.gatewayUrl === null) {
    read.wrong('STRIPE_SECRET_KEY', 'or GATEWAY_URL is needed: processes side by side share one processor.')
  }
  read.finish()
  return config
}

function readArguments(read: Reader, args: readonly string[]): Pick<Config, 'role' | 'waitMaxMs'> {
  let waitMaxMs = Number.POSITIVE_INFINITY
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { role: { type: 'string', default: 'all' }, wait: { type: 'string' } },
    })
    const { wait } = values
    if (wait !== undefined && !/^\d{1,6}$/.test(wait)) read.wrong('--wait', 'is a whole number of seconds.')
    else if (wait !== undefined) waitMaxMs = Number(wait) * 1_000
    const role = ROLES.find((name) => name === values.role)
    if (role !== undefined) return { role, waitMaxMs }
    read.wrong('--role', `is one of ${ROLES.join(', ')}.`)
  } catch (error) {
    read.wrong('The arguments', `are not understood: ${(error as Error).message}`)
  }
  return { role: 'all', waitMaxMs }
}

function readDatabase(read: Reader): Database {
  const url = read.url('DATABASE_URL', ['postgres:', 'postgresql:'])
  const poolSize = read.whole('DATABASE_POOL_SIZE', 3, POOL_SIZE_MAX) ?? POOL_SIZE_DEFAULT
  const readsPoolSize = read.whole('READS_POOL_SIZE', 2, POOL_SIZE_MAX) ?? SERVICE_LIMITS.readsPoolSize
  const pooler = read.oneOf('DATABASE_POOLER', POOLERS) ?? 'none'
  if (url !== null && !isDecodable(url)) {
    read.wrong('DATABASE_URL', 'has a percent sign that begins no character: write %25 for the sign itself.')
  }
  return url === null ? { kind: 'embedded' } : { kind: 'url', url, poolSize, readsPoolSize, pooler }
}

function readStripe(read: Reader): Stripe | null {
  const secretKey = read.text('STRIPE_SECRET_KEY')
  if (secretKey === null) return null
  const mode = /^[sr]k_(test|live)_\w+$/.exec(secretKey)?.[1] as Mode | undefined
  if (mode === undefined) read.wrong('STRIPE_SECRET_KEY', 'begins with sk_test_ or sk_live_.')
  return { mode: mode ?? 'test', secretKey }
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
    rateLive: read.whole('RATE_LIMIT_LIVE', 1, RATE_MAX) ?? 100,
    rateTest: read.whole('RATE_LIMIT_TEST', 1, RATE_MAX) ?? 25,
    velocityCard: read.rules('VELOCITY_CARD') ?? VELOCITY_CARD,
    velocityAccount: read.rules('VELOCITY_ACCOUNT') ?? VELOCITY_ACCOUNT,
    inFlightMax: read.whole('REQUESTS_AT_ONCE', 1, RATE_MAX) ?? 1_000,
    lagMaxMs: read.whole('OVERLOAD_LAG_MS', 1, DAY_MS) ?? SERVICE_LIMITS.overloadLagMaxMs,
    queueMaxMs: read.whole('OVERLOAD_QUEUE_MS', 1, DAY_MS) ?? SERVICE_LIMITS.overloadQueueMaxMs,
    waitMaxMs: read.whole('LIMITS_WAIT_MS', 1, DAY_MS) ?? LIMITS.limitWaitMaxMs,
    velocityWaitMaxMs: read.whole('VELOCITY_WAIT_MS', 1, DAY_MS) ?? SERVICE_LIMITS.velocityWaitMaxMs,
    poolSize: read.whole('LIMITS_POOL_SIZE', 1, POOL_SIZE_MAX) ?? SERVICE_LIMITS.limitsPoolSize,
    quotaLive: read.whole('QUOTA_LIVE', 1, RATE_MAX) ?? SERVICE_LIMITS.quotaLive,
    quotaTest: read.whole('QUOTA_TEST', 1, RATE_MAX) ?? SERVICE_LIMITS.quotaTest,
    accountAtOnceMax: read.whole('REQUESTS_PER_ACCOUNT', 1, RATE_MAX) ?? SERVICE_LIMITS.accountAtOnceMax,
    strangersPerMinute: read.whole('STRANGERS_PER_MINUTE', 1, RATE_MAX) ?? SERVICE_LIMITS.strangersPerMinute,
  }
}

function readTiming(read: Reader): Timing {
  const leaseMs = read.whole('LEASE_MS', 100, DAY_MS) ?? LIMITS.leaseMs
  const gatewayTimeoutMs = read.whole('GATEWAY_TIMEOUT_MS', 1, DAY_MS) ?? LIMITS.callTimeoutMs
  if (gatewayTimeoutMs * 3 > leaseMs * 2) {
    read.wrong('GATEWAY_TIMEOUT_MS', 'is at most two thirds of LEASE_MS: a call has to end before its lease.')
  }
  return {
    leaseMs,
    gatewayTimeoutMs,
    gatewayVisibleWithinMs: read.whole('GATEWAY_SETTLE_MS', 1, DAY_MS),
    graceMs: read.whole('GRACE_MS', 1, DAY_MS) ?? LIMITS.graceMs,
    reconcileAfterMs: read.seconds('RECONCILE_AFTER_SECONDS'),
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
