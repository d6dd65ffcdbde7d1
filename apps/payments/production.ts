import type { Secret } from 'onlyonce'
import type { Config } from './config.ts'
import type { Reader } from './environment.ts'

/** What the configuration shows of where it is used. */
type Signs = Pick<Config, 'host' | 'stripe'> & { readonly nodeEnv: string | null }

/**
 * Why this is no development, in words; null where nothing says so. One sign is enough: each of them means that strangers, or real
 * money, can reach the service.
 */
export function whyProduction({ host, stripe, nodeEnv }: Signs): string | null {
  // However it is spelt: a capital letter or a space must not open a demo account to strangers.
  if (nodeEnv !== null && /^prod(?:uction)?$/i.test(nodeEnv.trim())) return 'NODE_ENV is production'
  if (stripe?.mode === 'live') return 'STRIPE_SECRET_KEY is a live key'
  if (!isLoopback(host)) return 'HOST is not this machine alone'
  return null
}

/** Refuses what is made for development, each by the variable that would have to change. */
export function refuseDevelopment(config: Config, read: Reader): void {
  const why = config.production
  if (why === null) return
  const because = `because ${why}.`
  if (config.database.kind === 'embedded') {
    read.wrong('DATABASE_URL', `is needed, ${because} An embedded database is for development.`)
  }
  if (config.demo) read.wrong('DEMO_ACCOUNT', `cannot be used, ${because} Its API key is public.`)
  if (config.webhooksAllowPrivate) {
    read.wrong('WEBHOOKS_ALLOW_PRIVATE', `cannot be used, ${because} Accounts could reach your own network.`)
  }
  if (config.stripe === null) {
    const what = config.gatewayUrl === null ? 'is needed' : 'is needed in place of GATEWAY_URL'
    read.wrong('STRIPE_SECRET_KEY', `${what}, ${because} A sandbox moves no money.`)
  }
}

/**
 * Refuses one value for two purposes: what leaks at one place must not open another, and a fingerprint under the key of the
 * encryption would tell of that key. The values themselves are never told.
 */
export function refuseShared(secrets: Readonly<Record<string, readonly string[]>>, read: Reader): void {
  const owners = new Map<string, string>()
  for (const [name, values] of Object.entries(secrets)) {
    for (const value of values) {
      const owner = owners.get(value)
      if (owner === undefined) owners.set(value, name)
      else if (owner === name) read.wrong(name, 'holds the same secret twice.')
      else read.wrong(name, `is the same secret as ${owner}. Make one for each.`)
    }
  }
}

/** Whether only programs on this machine can reach what listens there. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/i.test(host)
}

/** Every secret that this process is given, by its variable. */
export function secretsOf({ secret, encryption, opsToken, stripe, webhookSecrets, database }: Config) {
  return {
    ONLYONCE_SECRET: valuesOf(secret),
    ENCRYPTION_KEY: valuesOf(encryption),
    OPS_TOKEN: opsToken === null ? [] : [opsToken],
    STRIPE_SECRET_KEY: stripe === null ? [] : [stripe.secretKey],
    STRIPE_WEBHOOK_SECRET: webhookSecrets,
    DATABASE_URL: database.kind === 'url' ? passwordsOf(database.url) : [],
  }
}

/** A password stands before the host, or in the query, where drivers read it too. Of what cannot be read there is none. */
function passwordsOf(text: string): readonly string[] {
  if (!URL.canParse(text) || !isDecodable(text)) return []
  const { password, searchParams } = new URL(text)
  const all = [decodeURIComponent(password), ...searchParams.getAll('password')]
  return [...new Set(all)].filter((one) => one !== '')
}

/** Whether a driver can read what its address writes with percent signs. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

function valuesOf(secret: Secret | null): readonly string[] {
  if (secret === null) return []
  if (typeof secret === 'string' || secret instanceof Uint8Array) return [`${secret}`]
  return Object.values(secret.keys).map((key) => `${key}`)
}
