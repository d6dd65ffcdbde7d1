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
  readonly api_key?: string
  /** Where events are sent, and what they are signed with. */
  readonly webhook?: WebhookTarget
  /** How long idempotency keys are remembered, by its clock. Default: a day, as Stripe does. */
  readonly key_lifetime_ms?: number
  /** How old a change is before search finds it, by its clock. Default: a second. */
  readonly search_lag_ms?: number
  /** What chance is drawn from. Default: drawn, and told in its state. */
  readonly seed?: number
}

export interface ServerOptions {
  readonly folder: string
  readonly api_key: string
  readonly webhook: WebhookTarget | undefined
  readonly key_lifetime_ms: number
  readonly search_lag_ms: number
  readonly seed: number
}

export const API_KEY = 'sk_test_sandbox'
const PORT = 4010
/** What the program ends with when somebody else listens on its port. */
export const PORT_TAKEN = 3

/** What the program is called with. */
export interface Arguments extends ServerOptions {
  readonly host: string
  readonly port: number
  /** Whether it ends when nobody holds its standard input any more. */
  readonly with_parent: boolean
}

export function argumentsOf(options: GatewayOptions, folder: string, port: number): string[] {
  const { api_key, webhook, key_lifetime_ms, search_lag_ms, seed } = options
  const given = {
    folder,
    port,
    'api-key': api_key,
    'webhook-url': webhook?.url,
    'webhook-secret': webhook?.secret,
    'key-lifetime-ms': key_lifetime_ms,
    'search-lag-ms': search_lag_ms,
    seed,
  }
  const named = Object.entries(given).filter(([, value]) => value !== undefined)
  return ['--with-parent', ...named.map(([name, value]) => `--${name}=${value}`)]
}

/** Reads the program's arguments. A wrong one is an error that names it. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: `${PORT}` },
      folder: { type: 'string' },
      'api-key': { type: 'string', default: API_KEY },
      'webhook-url': { type: 'string' },
      'webhook-secret': { type: 'string' },
      'key-lifetime-ms': { type: 'string', default: `${DAY_MS}` },
      'search-lag-ms': { type: 'string', default: '1000' },
      seed: { type: 'string', default: `${randomInt(2 ** 32)}` },
      'with-parent': { type: 'boolean', default: false },
    },
  })
  if (values.folder === undefined) throw new Error('Say where the journal is: --folder <path>.')
  if (!values['api-key'].startsWith('sk_test_')) throw new Error('--api-key has to begin with sk_test_.')
  return {
    host: values.host,
    port: count(values.port, '--port'),
    folder: values.folder,
    api_key: values['api-key'],
    webhook: webhookOf(values['webhook-url'], values['webhook-secret']),
    key_lifetime_ms: count(values['key-lifetime-ms'], '--key-lifetime-ms'),
    search_lag_ms: count(values['search-lag-ms'], '--search-lag-ms'),
    seed: count(values.seed, '--seed'),
    with_parent: values['with-parent'],
  }
}

function webhookOf(url: string | undefined, secret: string | undefined): WebhookTarget | undefined {
  if (url === undefined && secret === undefined) return undefined
  if (url === undefined || !secret) throw new Error('--webhook-url and --webhook-secret belong together.')
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
