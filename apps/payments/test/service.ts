import type { AddressInfo } from 'node:net'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { type FreshDatabase, freshDatabase } from '../../../test/setup/database.ts'
import { type Account, createAccount, createApiKey } from '../accounts/index.ts'
import { type Api, buildApi } from '../api/index.ts'
import { type Config, readConfig } from '../config.ts'
import type { Mode } from '../gateway/index.ts'
import { type OpenOptions, openService, type Service } from '../service.ts'
import { type Document, expectDocumented } from './documented.ts'

export { type ServiceProcess, startServiceProcess } from './service-process.ts'

export const TEST_SECRET = 'the-secret-of-the-service-in-tests-0123456789'
export const TEST_OPS_TOKEN = 'the-token-of-operators-in-tests'

export interface TestOptions extends OpenOptions {
  /** One that others use too; otherwise a fresh one. */
  readonly database?: FreshDatabase
  readonly config?: Partial<Config>
}

/** Tests that are not about limits meet none. */
export const UNLIMITED = {
  RATE_LIMIT_TEST: '1000000',
  RATE_LIMIT_LIVE: '1000000',
  VELOCITY_CARD: '1000000/60',
  VELOCITY_ACCOUNT: '1000000/60',
  OVERLOAD_LAG_MS: '60000',
  OVERLOAD_QUEUE_MS: '60000',
  LIMITS_WAIT_MS: '20000',
  VELOCITY_WAIT_MS: '20000',
  STRANGERS_PER_MINUTE: '1000000',
  QUOTA_TEST: '1000000',
  QUOTA_LIVE: '1000000',
  REQUESTS_PER_ACCOUNT: '1000000',
}

/** A caller with a key of its own. */
export interface TestCaller {
  readonly accountId: string
  /** `acct_…:test`, under which everything of it is kept. */
  readonly account: string
  readonly keyId: string
  readonly apiKey: string
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The JSON of the body, or its text where it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever it is.
  readonly body: any
  readonly text: string
}

export interface Ask {
  readonly method?: string
  /** Null sends none. */
  readonly apiKey?: string | null
  readonly key?: string
  /** Sent as JSON, unless it is a text or bytes. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface TestService extends TestCaller {
  readonly url: string
  readonly service: Service
  readonly api: Api
  readonly database: FreshDatabase
  /** Asks with the key of the service's own account, where no other is given. */
  ask(path: string, options?: Ask): Promise<Answer>
  post(path: string, body: unknown, options?: Ask): Promise<Answer>
  /** One more account with a key. */
  addCaller(mode?: Mode): Promise<TestCaller>
  close(): Promise<void>
}

/**
 * A service of one's own in this process, on a fresh database, with an account and an API key, which listens on a real socket.
 * No workers run. It is closed with the test, or with the file.
 *
 * @example
 * const { post } = await openTestService({ gateways: { test: gateway } })
 * const { status, body } = await post('/v1/payments', { amount: 1200, currency: 'EUR' }, { key: 'order-1-attempt-1' })
 */
export async function openTestService(options: TestOptions = {}): Promise<TestService> {
  const database = options.database ?? (await freshDatabase())
  const config = { ...testConfig(database), ...options.config }
  const service = await openService(config, {
    ...options,
    gateways: options.gateways ?? {},
  })
  const api = await buildApi(service)
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= api.close().then(() => service.close())
    return closing
  }
  cleanUpLater(close)
  await api.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(api.server.address() as AddressInfo).port}`
  documents.set(url, api.swagger() as unknown as Document)
  const caller = await makeCaller(service)
  const ask = (path: string, given: Ask = {}) => send(url, path, { apiKey: caller.apiKey, ...given })
  return {
    ...caller,
    url,
    service,
    api,
    database,
    ask,
    post: (path, body, given) => ask(path, { method: 'POST', body, ...given }),
    addCaller: (mode) => makeCaller(service, mode),
    close,
  }
}

export function testConfig(
  database: Pick<FreshDatabase, 'url'>,
  env: Readonly<Record<string, string | undefined>> = {},
): Config {
  return readConfig({
    DATABASE_URL: database.url,
    ONLYONCE_SECRET: TEST_SECRET,
    OPS_TOKEN: TEST_OPS_TOKEN,
    LOG_LEVEL: 'silent',
    PORT: '0',
    ...UNLIMITED,
    ...env,
  })
}

export async function makeCaller({ pool }: Pick<Service, 'pool'>, mode: Mode = 'test'): Promise<TestCaller> {
  const { id }: Account = await createAccount(pool, 'Test')
  const { id: keyId, api_key: apiKey } = (await createApiKey(pool, id, mode))!
  return { accountId: id, account: `${id}:${mode}`, keyId, apiKey }
}

/** What services in this process say of themselves, by where they listen: every answer is compared with it. */
const documents = new Map<string, Document>()

let asked = 0

/** One request over a socket, whose answer has to be one that the service's own document names. */
export async function send(url: string, path: string, given: Ask): Promise<Answer> {
  const answer = await sendUnchecked(url, path, given)
  const document = documents.get(url)
  if (document !== undefined) expectDocumented(document, { method: given.method ?? 'GET', path, ...answer })
  return answer
}

/** The same, for a test that compares answers itself. Every write has a key of its own where none is given; an empty one sends none. */
export async function sendUnchecked(url: string, path: string, given: Ask): Promise<Answer> {
  const { method = 'GET', apiKey = null, body, headers = {} } = given
  asked += 1
  const key = given.key ?? `test-key-${process.pid}-${asked}`
  const raw = typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(apiKey !== null && { authorization: `Bearer ${apiKey}` }),
      ...(method !== 'GET' && key !== '' && { 'idempotency-key': key }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: raw ? (body as string) : JSON.stringify(body) }),
    redirect: 'manual',
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: parse(text) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
