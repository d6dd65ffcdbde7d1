import { webcrypto } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Executed, idempotentFetch, NotExecuted, OutcomeUnknown } from './index.ts'
import { memoryStorage, pendingAction } from './keys/index.ts'
import type { Attempt, ClientOptions, IdempotentInit } from './options.ts'

/** Bodies are read by the runtime, in time of its own. */
const CLOCK = ['setTimeout', 'clearTimeout', 'Date', 'performance'] as const
beforeEach(() => void vi.useFakeTimers({ toFake: [...CLOCK] }))
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

const ENDPOINT = 'https://api.example.com/v1/payments'
const POST = { method: 'POST', body: '{"amount":100}' }

type Step = Response | Error | 'silence' | 'cut off' | ((init: RequestInit) => Response | Promise<Response>)

const problem = (status: number, code: string, retryable: boolean, executed: string, headers = {}) =>
  new Response(JSON.stringify({ code, retryable, executed }), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  })
const paid = (headers = {}) => new Response('{"id":"pay_1"}', { status: 201, headers })
const reset = () => Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNRESET' } })
const refused = () => Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })

/** An answer whose body ends in the middle. */
function cutOff(): Response {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('{"id":'))
      controller.error(new TypeError('terminated'))
    },
  })
  return new Response(body, { status: 201 })
}

/** A server that answers by a script. What comes after its end is the last step again. */
function server(steps: Step[], options: ClientOptions = {}) {
  const requests: { at: number; url: string; headers: Headers; init: RequestInit }[] = []
  const begun = performance.now()
  const fetch = async (input: string | Request, init: RequestInit): Promise<Response> => {
    const step = steps[Math.min(requests.length, steps.length - 1)]!
    const url = typeof input === 'string' ? input : input.url
    requests.push({ at: performance.now() - begun, url, headers: new Headers(init.headers), init })
    if (step === 'silence') {
      return await new Promise((_, reject) => {
        init.signal?.addEventListener('abort', () => reject(init.signal!.reason))
      })
    }
    if (step === 'cut off') return cutOff()
    if (step instanceof Error) throw step
    return typeof step === 'function' ? await step(init) : step.clone()
  }
  return { requests, pay: idempotentFetch({ fetch, ...options }) }
}

/** The end of a call, while time passes as fast as it can. */
async function ended<T>(promise: Promise<T>): Promise<T> {
  let done = false
  const end = () => {
    done = true
  }
  promise.then(end, end)
  while (!done) {
    await vi.runAllTimersAsync()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return await promise
}

const failed = async (promise: Promise<unknown>) =>
  (await ended(
    promise.then(
      () => null,
      (thrown) => thrown,
    ),
  )) as InstanceType<typeof OutcomeUnknown>

describe('one logical call', () => {
  it('is a fetch: it resolves with a standard response', async () => {
    const { pay, requests } = server([paid()])
    const asFetch: typeof fetch = pay
    const response = await ended(asFetch(ENDPOINT, POST))
    expect(response).toBeInstanceOf(Response)
    expect(await response.json()).toEqual({ id: 'pay_1' })
    expect(requests[0]!.headers.get('idempotency-key')).toMatch(/^[0-9a-f-]{36}$/)
  })

  it('has one key and the same bytes on every attempt, and another key for another call', async () => {
    const { pay, requests } = server([reset(), new Response('', { status: 502 }), paid()])
    const form = new FormData()
    form.set('file', new Blob(['text']), 'a.txt')
    const { key, attempts, replayed } = await ended(pay.send(ENDPOINT, { method: 'POST', body: form }))
    expect(new Set(requests.map(({ headers }) => headers.get('idempotency-key')))).toEqual(new Set([key]))
    const sent = requests.map(({ init, headers }) => [
      headers.get('content-type'),
      new TextDecoder().decode(init.body as Uint8Array),
    ])
    expect(sent[0]![0]).toMatch(/^multipart\/form-data; boundary=/)
    expect(sent[1]).toEqual(sent[0])
    expect(sent[2]).toEqual(sent[0])
    expect(attempts.map(({ status, code }) => [status, code])).toEqual([
      [null, 'no_answer'],
      [502, null],
      [201, null],
    ])
    expect(replayed).toBe(false)
    const again = await ended(pay.send(ENDPOINT, POST))
    expect(again.key).not.toBe(key)
  })

  it('keeps the bytes of a buffer that its caller changes meanwhile', async () => {
    const { pay, requests } = server([reset(), paid()])
    const body = new Uint8Array([1, 2, 3])
    const sending = ended(pay(ENDPOINT, { method: 'POST', body }))
    await Promise.resolve()
    await Promise.resolve()
    setTimeout(() => body.fill(9), 1)
    await sending
    expect(requests.map(({ init }) => [...(init.body as Uint8Array)])).toEqual([
      [1, 2, 3],
      [1, 2, 3],
    ])
  })

  it('takes a Request, and sends its body each time', async () => {
    const bodies: string[] = []
    const { pay } = server([
      async (init) => {
        bodies.push(await new Response(init.body as string).text())
        if (bodies.length === 1) throw reset()
        return paid()
      },
    ])
    const request = new Request(ENDPOINT, { method: 'POST', body: 'text', headers: { 'x-a': '1' } })
    expect((await ended(pay(request))).status).toBe(201)
    expect(bodies).toEqual(['text', 'text'])
  })

  it('refuses a body that cannot be sent twice before the first attempt', async () => {
    const { pay, requests } = server([paid()])
    const stream = new Blob(['a']).stream()
    await expect(
      pay(ENDPOINT, { method: 'POST', body: stream, duplex: 'half' } as IdempotentInit),
    ).rejects.toThrow(/stream cannot be sent twice/)
    async function* parts() {
      yield 'a'
    }
    const body = parts() as unknown as string
    await expect(pay(ENDPOINT, { method: 'POST', body })).rejects.toThrow(TypeError)
    expect(requests).toEqual([])
  })

  it('tells that an answer is that of an earlier attempt', async () => {
    const { pay } = server(['silence', paid({ 'idempotent-replayed': 'true' })])
    const sent = await ended(pay.send(ENDPOINT, POST))
    expect(sent).toMatchObject({
      replayed: true,
      attempts: [{ code: 'timeout', ms: 30_000 }, { replayed: true }],
    })
    expect(sent.ms).toBeGreaterThanOrEqual(30_500)
  })

  it('sends GET as it is, without a key', async () => {
    const { pay, requests } = server([new Response('[]', { status: 200 })], { headers: { 'x-a': '1' } })
    await pay(ENDPOINT)
    expect(requests[0]!.headers.has('idempotency-key')).toBe(false)
    expect(requests[0]!.headers.get('x-a')).toBe('1')
  })

  it('returns refusals as fetch does, where no attempt is in doubt', async () => {
    for (const status of [400, 401, 402, 403, 404, 413, 422]) {
      const { pay, requests } = server([new Response('{}', { status })])
      expect((await ended(pay(ENDPOINT, POST))).status).toBe(status)
      expect(requests.length).toBe(1)
    }
  })

  it('reads an answer whole: one that is cut off is asked for again', async () => {
    const { pay, requests } = server(['cut off', paid({ 'idempotent-replayed': 'true' })])
    expect(await (await ended(pay(ENDPOINT, POST))).json()).toEqual({ id: 'pay_1' })
    expect(requests.length).toBe(2)
  })

  it('joins relative addresses to baseUrl, and asks for headers once a call', async () => {
    const headers = vi.fn(async () => ({ authorization: 'Bearer t', 'x-a': '1' }))
    const { pay, requests } = server([reset(), paid()], { baseUrl: 'https://b.example.com/x/', headers })
    await ended(pay('/v1/payments', { ...POST, headers: { 'x-a': '2' } }))
    expect(requests.map(({ url }) => url)).toEqual(Array(2).fill('https://b.example.com/v1/payments'))
    expect(headers).toHaveBeenCalledTimes(1)
    expect(requests[1]!.headers.get('authorization')).toBe('Bearer t')
    expect(requests[1]!.headers.get('x-a')).toBe('2')
  })
})

describe('a failure is of one of three classes', () => {
  const down = problem(503, 'store_unavailable', true, 'not_by_this_request')
  const CASES: [string, Step[], IdempotentInit, string, string][] = [
    ['refused for now each time', [down], {}, 'NotExecuted', 'store_unavailable'],
    ['never connected', [refused()], {}, 'NotExecuted', 'not_sent'],
    ['never answered', [reset()], {}, 'OutcomeUnknown', 'no_answer'],
    ['answered only by proxies', [new Response('', { status: 502 })], {}, 'OutcomeUnknown', 'status_502'],
    ['no answer, then 401', [reset(), new Response('', { status: 401 })], {}, 'OutcomeUnknown', 'status_401'],
    [
      'no answer, then 403',
      [reset(), problem(403, 'forbidden', false, 'not_by_this_request')],
      {},
      'OutcomeUnknown',
      'forbidden',
    ],
    [
      'no answer, then not executed',
      [reset(), problem(503, 'not_executed', true, 'no')],
      {},
      'NotExecuted',
      'not_executed',
    ],
    [
      'a reused key',
      [problem(422, 'key_reused', false, 'not_by_this_request')],
      {},
      'OutcomeUnknown',
      'key_reused',
    ],
    [
      'a failed handler',
      [problem(500, 'handler_failed', false, 'unknown')],
      {},
      'OutcomeUnknown',
      'handler_failed',
    ],
    ['parked', [problem(409, 'parked', false, 'unknown')], {}, 'OutcomeUnknown', 'parked'],
    [
      'a reply that was not kept',
      [problem(409, 'reply_not_kept', false, 'yes')],
      {},
      'Executed',
      'reply_not_kept',
    ],
    ['the head of a result and no more', ['cut off', reset()], {}, 'Executed', 'no_answer'],
    [
      'a key that was sent before, refused',
      [new Response('', { status: 403 })],
      { key: 'key-of-mine-1' },
      'OutcomeUnknown',
      'status_403',
    ],
    [
      'a key of the caller that is new, refused for now',
      [down],
      { key: 'key-of-mine-1', resumed: false },
      'NotExecuted',
      'store_unavailable',
    ],
    [
      'a key that was sent before, never sent now',
      [refused()],
      { key: 'key-of-mine-1' },
      'OutcomeUnknown',
      'not_sent',
    ],
  ]
  it.each(CASES)('%s', async (_, steps, init, name, code) => {
    const { pay } = server(steps)
    const error = await failed(pay(ENDPOINT, { ...POST, ...init }))
    expect(error).toMatchObject({ name, code })
    const classes = { NotExecuted, Executed, OutcomeUnknown }
    const known = Object.entries(classes).filter(([, type]) => error instanceof type)
    expect(known.map(([name]) => name)).toEqual([name])
    expect(error.key.length).toBeGreaterThan(8)
    expect(error.attempts.length).toBeGreaterThan(0)
  })

  it('is known to another copy of the package, and everything else is not', async () => {
    vi.resetModules()
    const other = await import('./index.ts')
    expect(other.NotExecuted).not.toBe(NotExecuted)
    const error = new other.NotExecuted({ code: 'a' })
    expect(error instanceof NotExecuted).toBe(true)
    expect(error instanceof OutcomeUnknown).toBe(false)
    expect(error instanceof Error).toBe(true)
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    for (const value of [null, undefined, 'NotExecuted', { name: 'NotExecuted' }, new Error('a'), proxy]) {
      expect((value as unknown) instanceof NotExecuted).toBe(false)
    }
  })

  it('carries the last answer, readable, and when to come back', async () => {
    const { pay } = server([
      problem(429, 'rate_limited', true, 'not_by_this_request', { 'retry-after': '600' }),
    ])
    const error = await failed(pay(ENDPOINT, POST))
    expect(error).toMatchObject({ name: 'NotExecuted', retryAfterMs: 600_000 })
    expect(error.attempts.length).toBe(1)
    expect(await error.response!.json()).toMatchObject({ code: 'rate_limited' })
  })

  it('of an unknown outcome, it asks for the status of its key at the server of the request', async () => {
    const uses = [{ state: 'completed', status: 201, location: '/v1/payments/pay_1', detail: 'done' }]
    const fetch = async (input: string | Request): Promise<Response> => {
      if (input === ENDPOINT) throw reset()
      expect(input).toBe('https://api.example.com/v1/idempotency-keys/a%2Fkey-of-mine')
      return Response.json({ known: true, uses })
    }
    const error = await failed(idempotentFetch({ fetch })(ENDPOINT, { ...POST, key: 'a/key-of-mine' }))
    expect(await error.status()).toEqual({
      key: 'a/key-of-mine',
      state: 'completed',
      executed: 'yes',
      status: 201,
      location: '/v1/payments/pay_1',
      detail: 'done',
    })
  })
})

describe('patience', () => {
  it('retries twice by default, after waits that double', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0.9999)
    const waits: [number, string][] = []
    const { pay, requests } = server([reset()], {
      onWaiting: (ms, why) => void waits.push([Math.round(ms), why]),
    })
    const error = await failed(pay(ENDPOINT, POST))
    expect(requests.length).toBe(3)
    expect(waits).toEqual([
      [500, 'no_answer'],
      [1_000, 'no_answer'],
    ])
    expect(error.ms).toBeGreaterThanOrEqual(1_499)
    vi.restoreAllMocks()
  })

  it('waits as long as the server asks', async () => {
    const busy = problem(503, 'overloaded', true, 'not_by_this_request', { 'retry-after': '9' })
    const { pay, requests } = server([busy, paid()])
    await ended(pay(ENDPOINT, POST))
    expect(requests[1]!.at).toBeGreaterThanOrEqual(9_000)
  })

  it('waits for an attempt in progress until the deadline, and never with another key', async () => {
    const working = problem(409, 'in_progress', true, 'unknown', { 'retry-after': '1' })
    const { pay, requests } = server([...Array(12).fill(working), paid({ 'idempotent-replayed': 'true' })])
    expect((await ended(pay(ENDPOINT, POST))).status).toBe(201)
    expect(requests.length).toBe(13)
    expect(new Set(requests.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1)

    const forever = server([working], { deadlineMs: 10_000 })
    expect(await failed(forever.pay(ENDPOINT, POST))).toMatchObject({
      name: 'OutcomeUnknown',
      code: 'in_progress',
    })
    expect(forever.requests.at(-1)!.at).toBeLessThan(10_000)
  })

  it('never retries a final answer', async () => {
    for (const status of [400, 401, 403, 404, 422]) {
      const { pay, requests } = server([new Response('', { status })])
      await ended(pay(ENDPOINT, POST))
      expect(requests.length).toBe(1)
    }
  })

  it('ends at its deadline, also in the middle of an attempt, and sends it to the server', async () => {
    const { pay, requests } = server(['silence'], { deadlineMs: 5_000, deadlineHeader: 'X-Deadline' })
    const sent = Date.now()
    const error = await failed(pay(ENDPOINT, POST))
    expect(error).toMatchObject({ name: 'OutcomeUnknown', code: 'timeout', ms: 5_000 })
    expect(Number(requests[0]!.headers.get('x-deadline'))).toBe(sent + 5_000)
    const never = await failed(pay(ENDPOINT, { ...POST, deadlineMs: 0 }))
    expect(never).toMatchObject({ name: 'NotExecuted', code: 'deadline_exceeded', attempts: [] })
  })

  it('gives up a fetch that does not know signals', async () => {
    const { pay } = server([() => new Promise<Response>(() => {})], { maxRetries: 0 })
    expect(await failed(pay(ENDPOINT, POST))).toMatchObject({ name: 'OutcomeUnknown', code: 'timeout' })
  })

  it('ends when it is aborted: before, in and between attempts', async () => {
    const before = server([paid()])
    const error = await failed(
      before.pay(ENDPOINT, { ...POST, signal: AbortSignal.abort(new Error('gone')) }),
    )
    expect(error).toMatchObject({ name: 'NotExecuted', code: 'aborted', cause: new Error('gone') })
    expect(before.requests).toEqual([])

    for (const [step, at] of [
      ['silence', 100],
      [reset(), 200],
    ] as const) {
      const controller = new AbortController()
      const { pay, requests } = server([step])
      setTimeout(() => controller.abort(), at)
      const error = await failed(pay(ENDPOINT, { ...POST, signal: controller.signal }))
      expect(error).toMatchObject({ name: 'OutcomeUnknown', code: 'aborted', ms: at })
      expect(requests.length).toBe(1)
    }
  })

  it('sends nothing while the browser is offline', async () => {
    vi.stubGlobal('navigator', { onLine: false })
    const { pay, requests } = server([paid()])
    expect(await failed(pay(ENDPOINT, POST))).toMatchObject({ name: 'NotExecuted', code: 'offline' })
    expect(requests).toEqual([])
    const back = ended(pay(ENDPOINT, POST))
    setTimeout(() => vi.stubGlobal('navigator', { onLine: true }), 100)
    expect((await back).status).toBe(201)
  })

  it('tells hooks what happens, and is not harmed by what they throw', async () => {
    const reported = vi.fn()
    vi.stubGlobal('reportError', reported)
    const attempts: Attempt[] = []
    const { pay } = server([reset(), paid()], { onAttempt: (attempt) => void attempts.push(attempt) })
    const hooks = {
      onAttempt: () => {
        throw new Error('a')
      },
      onWaiting: async () => {
        throw new Error('b')
      },
    }
    expect((await ended(pay(ENDPOINT, { ...POST, ...hooks }))).status).toBe(201)
    expect(attempts.map(({ number, executed }) => [number, executed])).toEqual([
      [1, 'unknown'],
      [2, 'yes'],
    ])
    expect(reported).toHaveBeenCalledTimes(3)
  })

  it('refuses what is no setting', async () => {
    expect(() => idempotentFetch({ api: 'square' as 'stripe' })).toThrow(TypeError)
    expect(() => idempotentFetch({ maxRetry: 1 } as ClientOptions)).toThrow(
      /has no option maxRetry\. Its options are api/,
    )
    expect(() => idempotentFetch({ retryBudget: { brst: 1 } as object })).toThrow(/no option brst/)
    const { pay, requests } = server([paid()])
    await expect(pay(ENDPOINT, { ...POST, maxRetries: -1 })).rejects.toThrow(TypeError)
    await expect(pay(ENDPOINT, { ...POST, deadlineMs: Number.NaN })).rejects.toThrow(TypeError)
    for (const key of ['', 'ü', 'a\nb', 'a'.repeat(256)]) {
      await expect(pay(ENDPOINT, { ...POST, key })).rejects.toThrow(TypeError)
    }
    expect(requests).toEqual([])
  })
})

describe('calls of one client share', () => {
  it('a budget of retries', async () => {
    const retryBudget = { burst: 3, perSecond: 1, ratio: 0 }
    const { pay, requests } = server([reset()], { retryBudget, circuitBreaker: false })
    const errors = await Promise.all(Array.from({ length: 10 }, () => failed(pay(ENDPOINT, POST))))
    // Three at once, and as many more as came back with the time of their waits.
    expect(requests.length).toBeGreaterThanOrEqual(13)
    expect(requests.length).toBeLessThanOrEqual(15)
    expect(errors.filter(({ code }) => code === 'retry_budget_spent').length).toBeGreaterThanOrEqual(7)
    expect(new Set(errors.map(({ name }) => name))).toEqual(new Set(['OutcomeUnknown']))
    const free = server([reset()], { retryBudget: false, circuitBreaker: false })
    await Promise.all(Array.from({ length: 10 }, () => failed(free.pay(ENDPOINT, POST))))
    expect(free.requests.length).toBe(30)
  })

  it('a circuit breaker: a server in trouble is left alone, and then tried by one', async () => {
    let up = false
    const circuitBreaker = { failures: 3, openMs: 10_000 }
    const step = () => (up ? paid() : new Response('', { status: 503 }))
    const { pay, requests } = server([step], { circuitBreaker, maxRetries: 0 })
    for (let n = 0; n < 3; n++) await failed(pay(ENDPOINT, POST))
    const error = await failed(pay(ENDPOINT, POST))
    expect(error).toMatchObject({ name: 'NotExecuted', code: 'circuit_open', attempts: [] })
    expect(error.retryAfterMs).toBeGreaterThan(9_000)
    expect(requests.length).toBe(3)
    // Another origin is another server.
    expect(await failed(pay('https://b.example.com/', POST))).toMatchObject({ code: 'status_503' })
    await vi.advanceTimersByTimeAsync(10_000)
    up = true
    const calls = await Promise.allSettled([pay(ENDPOINT, POST), pay(ENDPOINT, POST), pay(ENDPOINT, POST)])
    expect(calls.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect((await pay(ENDPOINT, POST)).status).toBe(201)
  })

  it('a circuit breaker, which an attempt that has begun waits for', async () => {
    const circuitBreaker = { failures: 2, openMs: 3_000 }
    const waits: string[] = []
    const options: ClientOptions = { circuitBreaker, onWaiting: (_, why) => void waits.push(why) }
    const { pay, requests } = server([reset(), reset(), paid()], options)
    expect((await ended(pay(ENDPOINT, POST))).status).toBe(201)
    expect(waits).toContain('circuit_open')
    expect(requests[2]!.at - requests[1]!.at).toBeGreaterThanOrEqual(3_000)
  })

  it('a circuit breaker, from which calls that wait do not all come back at one moment', async () => {
    const begun = performance.now()
    const step = () => (performance.now() - begun < 2_000 ? new Response('', { status: 503 }) : paid())
    const { pay, requests } = server([step], { circuitBreaker: { failures: 10, openMs: 3_000 } })
    await Promise.all(Array.from({ length: 20 }, () => ended(pay(ENDPOINT, POST))))
    const seconds = requests.slice(20).map(({ at }) => Math.floor(at / 1_000))
    const most = Math.max(...seconds.map((second) => seconds.filter((other) => other === second).length))
    expect(most).toBeLessThan(15)
  })
})

describe('the key', () => {
  it('is issued first, once', async () => {
    const key = vi.fn(async () => 'once.1.default.abc')
    const { pay, requests } = server([reset(), paid()])
    await ended(pay(ENDPOINT, { ...POST, key }))
    expect(key).toHaveBeenCalledTimes(1)
    expect(requests.map(({ headers }) => headers.get('idempotency-key'))).toEqual(
      Array(2).fill('once.1.default.abc'),
    )
    const none = pay(ENDPOINT, { ...POST, key: () => Promise.reject(new Error('no')) })
    expect(await failed(none)).toMatchObject({ name: 'NotExecuted', code: 'no_key', cause: new Error('no') })
    expect(requests.length).toBe(2)
  })

  it('is random also on a page without TLS, and told to be impossible without any chance', async () => {
    const { pay, requests } = server([paid()])
    const { getRandomValues } = crypto
    vi.stubGlobal('crypto', {
      getRandomValues: (bytes: Uint8Array) => getRandomValues.call(webcrypto, bytes),
    })
    await ended(pay(ENDPOINT, POST))
    await ended(pay(ENDPOINT, POST))
    const keys = requests.map(({ headers }) => headers.get('idempotency-key'))
    expect(new Set(keys).size).toBe(2)
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    vi.stubGlobal('crypto', undefined)
    await expect(pay(ENDPOINT, POST)).rejects.toThrow(/react-native-get-random-values/)
  })

  it('is the one in the header, as with fetch', async () => {
    for (const api of ['onlyonce', 'draft'] as const) {
      for (const text of ['key-of-mine-1', '"key-of-mine-1"']) {
        const { pay } = server([new Response('', { status: 403 })], { api })
        const error = await failed(pay(ENDPOINT, { ...POST, headers: { 'Idempotency-Key': text } }))
        expect(error).toMatchObject({ name: 'OutcomeUnknown', key: 'key-of-mine-1' })
      }
    }
  })

  it.each([
    ['onlyonce', 'idempotency-key', 'a-"key"-1'],
    ['draft', 'idempotency-key', '"a-\\"key\\"-1"'],
    ['stripe', 'idempotency-key', 'a-"key"-1'],
    ['adyen', 'idempotency-key', 'a-"key"-1'],
    ['paypal', 'paypal-request-id', 'a-"key"-1'],
  ] as const)('stands where %s has it', async (api, header, text) => {
    const { pay, requests } = server([paid()], { api })
    await ended(pay(ENDPOINT, { ...POST, key: 'a-"key"-1' }))
    expect(requests[0]!.headers.get(header)).toBe(text)
  })

  it('is bounded as the API bounds it, and has a header of your own', async () => {
    const adyen = server([paid()], { api: 'adyen' })
    await expect(adyen.pay(ENDPOINT, { ...POST, key: 'a'.repeat(65) })).rejects.toThrow(/1 to 64/)
    const own = server([paid()], { api: { keyHeader: 'X-Request-Id', keyLengthMax: 20 } })
    await ended(own.pay(ENDPOINT, { ...POST, key: 'key-1' }))
    expect(own.requests[0]!.headers.get('x-request-id')).toBe('key-1')
  })

  it('of an action is shared by two taps, and each of them reads the answer', async () => {
    vi.useRealTimers()
    const { pay, requests } = server([paid()])
    const action = pendingAction('checkout:cart-42', { storage: memoryStorage(), user: 'usr_1' })
    const taps = await Promise.all([pay(ENDPOINT, { ...POST, action }), pay(ENDPOINT, { ...POST, action })])
    expect(await Promise.all(taps.map((response) => response.json()))).toEqual(Array(2).fill({ id: 'pay_1' }))
    expect(requests.length).toBe(1)
  })
})
