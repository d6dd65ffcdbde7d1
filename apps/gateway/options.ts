import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import type { WebhookTarget } from './webhooks.ts'

const DAY_MS = 24 * 60 * 60 * 1_000

/** What a gateway can be started with. */
export interface GatewayOptions {
  /** Where its journal is. One gateway at a time; started again there, it goes on. Default: a new one that is removed by `stop()`. */
  readonly folder?: string
  /** Default: a free one. */
  readonly port?: number
  /** The only one it accepts. Default: `sk_test_sandbox`. */
  readonly apiKey?: string
  /** Opens its control routes. Default: one that is drawn, and kept in its folder. */
  readonly controlToken?: string
  /** Where events are sent, and what they are signed with. */
  readonly webhook?: WebhookTarget
  /** How long idempotency keys are remembered, by its clock. Default: a day, as Stripe does. */
  readonly keyLifetimeMs?: number
  /** How old a change is before search finds it, by its clock. Default: a second. */
  readonly searchLagMs?: number
  /** What chance is drawn from. Default: drawn, and told in its state. */
  readonly seed?: number
  /** A compiled copy of its program, which starts without a loader. Default: the program itself. */
  readonly program?: string
}

export interface ServerOptions {
  readonly folder: string
  readonly apiKey: string
  /** Null: one that is drawn, and kept in the folder. */
  readonly controlToken: string | null
  readonly webhook: WebhookTarget | undefined
  readonly keyLifetimeMs: number
  readonly searchLagMs: number
  readonly seed: number
}

export const API_KEY = 'sk_test_sandbox'
const PORT = 4010
/** What the program ends with when somebody else listens on its port. */
export const PORT_TAKEN = 3
/** And when another one works in its folder. */
export const FOLDER_TAKEN = 4

/** What the program is called with. */
export interface Arguments extends ServerOptions {
  readonly host: string
  readonly port: number
  /** Whether it ends when nobody holds its standard input any more. */
  readonly withParent: boolean
}

/** Where secrets are given: a command line can be read by every user of the machine. */
const SECRETS = {
  apiKey: 'SANDBOX_API_KEY',
  controlToken: 'SANDBOX_CONTROL_TOKEN',
  webhookSecret: 'SANDBOX_WEBHOOK_SECRET',
} as const

export type Environment = Readonly<Record<string, string | undefined>>

/** The secrets of a gateway, as the environment of its process. */
export function environmentOf({ apiKey, controlToken, webhook }: GatewayOptions): Environment {
  return {
    [SECRETS.apiKey]: apiKey,
    [SECRETS.controlToken]: controlToken,
    [SECRETS.webhookSecret]: webhook?.secret,
  }
}

export function argumentsOf(options: GatewayOptions, folder: string, port: number): string[] {
  const { webhook, keyLifetimeMs, searchLagMs, seed } = options
  const given = {
    folder,
    port,
    'webhook-url': webhook?.url,
    'key-lifetime-ms': keyLifetimeMs,
    'search-lag-ms': searchLagMs,
    seed,
  }
  const named = Object.entries(given).filter(([, value]) => value !== undefined)
  return ['--with-parent', ...named.map(([name, value]) => `--${name}=${value}`)]
}

/** Reads the program's arguments, and its secrets from the environment. A wrong one is an error that names it. */
export function readArguments(args: readonly string[], env: Environment = {}): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: `${PORT}` },
      folder: { type: 'string' },
      'webhook-url': { type: 'string' },
      'key-lifetime-ms': { type: 'string', default: `${DAY_MS}` },
      'search-lag-ms': { type: 'string', default: '1000' },
      seed: { type: 'string', default: `${randomInt(2 ** 32)}` },
      'with-parent': { type: 'boolean', default: false },
    },
  })
  if (values.folder === undefined) throw new Error('Say where the journal is: --folder <path>.')
  const apiKey = env[SECRETS.apiKey] ?? API_KEY
  if (!apiKey.startsWith('sk_test_')) throw new Error(`${SECRETS.apiKey} has to begin with sk_test_.`)
  const controlToken = env[SECRETS.controlToken] ?? null
  if (controlToken === '') throw new Error(`${SECRETS.controlToken} is empty.`)
  return {
    host: values.host,
    port: count(values.port, '--port'),
    folder: values.folder,
    apiKey,
    controlToken,
    webhook: webhookOf(values['webhook-url'], env[SECRETS.webhookSecret]),
    keyLifetimeMs: count(values['key-lifetime-ms'], '--key-lifetime-ms'),
    searchLagMs: count(values['search-lag-ms'], '--search-lag-ms'),
    seed: count(values.seed, '--seed'),
    withParent: values['with-parent'],
  }
}

function webhookOf(url: string | undefined, secret: string | undefined): WebhookTarget | undefined {
  if (url === undefined && secret === undefined) return undefined
  if (url === undefined || !secret) {
    throw new Error(`--webhook-url and ${SECRETS.webhookSecret} in the environment belong together.`)
  }
  if (!URL.canParse(url) || new URL(url).protocol !== 'http:') {
    throw new Error('--webhook-url has to begin with http://.')
  }
  return { url, secret }
}

function count(text: string, name: string): number {
  const number = Number(text)
  if (text === '' || !Number.isSafeInteger(number) || number < 0)
    throw new Error(`${name} has to be a number.`)
  return number
}
