import { type Client, runCall } from './call.ts'
import { CONVENTIONS } from './conventions.ts'
import { NotExecuted } from './errors.ts'
import { Breaker, Budget } from './limits.ts'
import { refuseUnknown } from './names.ts'
import type { CallOptions, ClientOptions, IdempotentFetch, IdempotentInit, Sent } from './options.ts'
import { prepare } from './request.ts'
import { type KeyStatus, readKeyStatus } from './status.ts'
import { randomKey } from './uuid.ts'

const NAMES =
  'api attemptTimeoutMs baseUrl circuitBreaker deadlineHeader deadlineMs fetch headers initialDelayMs maxDelayMs maxRetries onAttempt onWaiting readStatus retryBudget statusUrl'

/** Origins whose trouble is remembered. A client talks to one or a few. */
const ORIGINS_MAX = 100

/**
 * Makes a `fetch` whose requests take effect once: one key for each call, made before the first attempt, and the same bytes with every
 * attempt. Make one for each API and keep it: its calls share a retry budget and a circuit breaker.
 *
 * @example
 * const pay = idempotentFetch({ baseUrl: 'https://api.example.com', headers: { authorization: `Bearer ${token}` } })
 * try {
 *   const response = await pay('/v1/payments', { method: 'POST', body: JSON.stringify(order) })
 *   show(response.ok ? 'paid' : 'refused')
 * } catch (error) {
 *   if (error instanceof OutcomeUnknown) show('pending')
 *   else if (error instanceof NotExecuted) show('not paid, try again')
 *   else throw error
 * }
 */
export function idempotentFetch(options: ClientOptions = {}): IdempotentFetch {
  refuseUnknown('idempotentFetch', options, NAMES)
  const { baseUrl, headers: usual, api = 'onlyonce' } = options
  const retryBudget = merged('retryBudget', options.retryBudget, { burst: 20, perSecond: 1, ratio: 0.2 })
  const circuitBreaker = merged('circuitBreaker', options.circuitBreaker, { failures: 10, openMs: 5_000 })
  const convention = typeof api === 'object' ? api : CONVENTIONS[api]
  if (convention === undefined) throw new TypeError(`There is no preset ${api}.`)
  const breakers = new Map<string, Breaker>()
  const baseOf = (url: string) => (/^https?:/.test(url) ? url : baseUrl)
  const headersOf = async () => (typeof usual === 'function' ? await usual() : usual)

  async function status(key: string, base = baseUrl): Promise<KeyStatus> {
    const { statusUrl = '/v1/idempotency-keys/{key}', readStatus = readKeyStatus } = options
    const place =
      typeof statusUrl === 'string' ? statusUrl.replace('{key}', encodeURIComponent(key)) : statusUrl(key)
    const { url, headers } = await prepare(place, {}, await headersOf(), base)
    const ending = new AbortController()
    const timer = setTimeout(() => ending.abort(), options.attemptTimeoutMs ?? 30_000)
    try {
      return await readStatus(await client.fetch(url, { headers, signal: ending.signal }), key)
    } finally {
      clearTimeout(timer)
    }
  }

  const client: Client = {
    api: convention,
    options,
    fetch: (input, init) => (options.fetch ?? fetch)(input, init),
    status: (key, url) => status(key, baseOf(url)),
    budget: retryBudget && new Budget(retryBudget),
    breakerOf(url) {
      if (circuitBreaker === null) return null
      const base = baseOf(url)
      const origin = base === undefined ? '' : new URL(base).origin
      const known = breakers.get(origin) ?? new Breaker(circuitBreaker)
      if (breakers.size >= ORIGINS_MAX) breakers.clear()
      breakers.set(origin, known)
      return known
    },
  }

  async function send(input: string | URL | Request, given: IdempotentInit = {}): Promise<Sent> {
    const { key, action, resumed } = given
    const request = await prepare(input, given, await headersOf(), baseUrl)
    const { method, url, headers, body } = request
    // Requests that change nothing need no key.
    if (/^(GET|HEAD|OPTIONS)$/.test(method)) {
      const response = await client.fetch(request.target, { ...given, headers })
      return { response, key: '', attempts: [], replayed: false, ms: 0 }
    }
    const run = (key: string, resumed: boolean) => runCall(client, request, key, resumed, given)
    // A key in the header counts too, as it would with fetch.
    const chosen = key ?? headers.get(convention.keyHeader)?.replace(/^"(.*)"$/, '$1')
    if (action === undefined) return await run(await keyOf(chosen), resumed ?? typeof chosen === 'string')
    const payload = [method, url, typeof body === 'string' ? body : Array.from(body ?? [])]
    const sent = await action.run(payload, (turn) => run(turn.key, turn.resumed))
    // Two taps may share one flight, and each of them reads the body.
    return { ...sent, response: sent.response.clone() }
  }

  const once = async (input: string | URL | Request, init?: IdempotentInit) =>
    (await send(input, init)).response
  return Object.assign(once, { send, status: (key: string) => status(key) })
}

/** Settings of which some may be given; null where there are none by choice. */
function merged<T extends object>(name: string, given: Partial<T> | false = {}, usual: T): T | null {
  if (given === false) return null
  refuseUnknown(name, given, Object.keys(usual).join(' '))
  return { ...usual, ...given }
}

async function keyOf(key: CallOptions['key']): Promise<string> {
  if (typeof key !== 'function') return key ?? randomKey()
  try {
    return await key()
  } catch (cause) {
    throw new NotExecuted({ code: 'no_key', cause })
  }
}
