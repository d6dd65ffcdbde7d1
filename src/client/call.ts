import { backoffMs, retryAfterMs } from './backoff.ts'
import { classify } from './classify.ts'
import { now, sleep, wallNow } from './clock.ts'
import type { Convention } from './conventions.ts'
import { type CallFailure, Executed, NotExecuted, OutcomeUnknown } from './errors.ts'
import { judge, type Verdict } from './judge.ts'
import type { Breaker, Budget } from './limits.ts'
import type { Attempt, CallOptions, ClientOptions, Sent, WhyWaiting } from './options.ts'
import type { Prepared } from './request.ts'
import type { KeyStatus } from './status.ts'
import { tell, wasNeverSent } from './thrown.ts'

/** What calls of one client share. */
export interface Client {
  readonly api: Convention
  readonly options: ClientOptions
  readonly budget: Budget | null
  readonly fetch: (input: string | Request, init: RequestInit) => Promise<Response>
  breakerOf(url: string): Breaker | null
  status(key: string, url: string): Promise<KeyStatus>
}

/** How an attempt ended. */
interface Ended extends Verdict {
  readonly response: Response | null
  readonly status: number | null
  readonly cause?: unknown
}

const LOST = { next: 'retry', replayed: false, outcome: false, response: null } as const
const UNSENT = { ...LOST, status: null, executed: 'not_by_this_request' } as const

/** One logical call: its attempts, its waits, and what they prove together. */
export async function runCall(
  client: Client,
  request: Prepared,
  key: string,
  resumed: boolean,
  given: CallOptions,
): Promise<Sent> {
  const { api, options, budget } = client
  const { url, signal } = request
  const maxRetries = given.maxRetries ?? options.maxRetries ?? 2
  const deadlineMs = given.deadlineMs ?? options.deadlineMs ?? 120_000
  const attemptTimeoutMs = given.attemptTimeoutMs ?? options.attemptTimeoutMs ?? 30_000
  const { initialDelayMs = 500, maxDelayMs = 5_000, deadlineHeader } = options
  for (const value of [maxRetries, deadlineMs, attemptTimeoutMs, initialDelayMs, maxDelayMs]) {
    if (!(value >= 0)) throw new TypeError('Retries and times are numbers from 0.')
  }
  if (!/^[ -~]+$/.test(key) || key.length > api.keyLengthMax) {
    throw new TypeError(`A key has 1 to ${api.keyLengthMax} printable ASCII characters.`)
  }
  const begun = now()
  const attempts: Attempt[] = []
  const breaker = client.breakerOf(url)
  let last: Ended | null = null

  const ms = () => now() - begun
  const left = () => deadlineMs - ms()
  const proved = () => classify(attempts, resumed)

  function failure(code: string, cause: unknown = last?.cause, waitMs?: number): CallFailure {
    const response = last?.response ?? null
    const after = waitMs ?? (response && retryAfterMs(response.headers))
    const facts = { code, key, attempts, response, retryAfterMs: after, ms: ms() }
    const outcome = proved()
    if (outcome === 'not_executed') return new NotExecuted({ ...facts, cause })
    if (outcome === 'executed') return new Executed({ ...facts, cause })
    return new OutcomeUnknown({ ...facts, cause, status: () => client.status(key, url) })
  }

  async function wait(delayMs: number, why: WhyWaiting, code: string): Promise<void> {
    if (delayMs >= left()) throw failure(code)
    tell([options.onWaiting, given.onWaiting], delayMs, why)
    await sleep(delayMs, signal)
  }

  /** Lets the next attempt through, or fails. A first attempt does not wait for a server in trouble; a later one has something to find out. */
  async function pass(): Promise<void> {
    for (;;) {
      if (signal?.aborted) throw failure('aborted', signal.reason)
      if (left() <= 0) throw failure('deadline_exceeded')
      const closedMs = breaker?.enter() ?? 0
      if (closedMs <= 0) return
      if (last === null) throw failure('circuit_open', undefined, closedMs)
      // Calls that wait for one origin do not all come back at one moment.
      await wait(closedMs + Math.random() * maxDelayMs, 'circuit_open', 'circuit_open')
    }
  }

  function headersNow(): Headers {
    const headers = new Headers(request.headers)
    headers.set(api.keyHeader, api.keyQuoted ? `"${key.replace(/["\\]/g, '\\$&')}"` : key)
    if (deadlineHeader !== undefined) headers.set(deadlineHeader, `${Math.floor(wallNow() + left())}`)
    return headers
  }

  /** Sends the request, and reads the whole answer: one that is cut off is as good as lost. */
  async function exchange(): Promise<Ended> {
    if ((globalThis as { navigator?: { onLine?: boolean } }).navigator?.onLine === false) {
      return { ...UNSENT, code: 'offline' }
    }
    const ending = new AbortController()
    let code = 'no_answer'
    const end = (why: string) => {
      code = why
      ending.abort()
    }
    const aborted = () => end('aborted')
    // A fetch that does not know signals is given up as well.
    const ended = new Promise<never>((_, reject) => {
      ending.signal.addEventListener('abort', () => reject(signal?.reason ?? new Error(code)))
    })
    signal?.addEventListener('abort', aborted)
    const timer = setTimeout(end, Math.min(attemptTimeoutMs, left()), 'timeout')
    let status: number | null = null
    try {
      const { init, method, body } = request
      const sent = { ...init, method, body, headers: headersNow(), signal: ending.signal }
      const response = await Promise.race([client.fetch(request.target, sent), ended])
      status = response.status
      const text = await Promise.race([response.clone().text(), ended])
      return { ...judge(response, text, api), response, status }
    } catch (cause) {
      if (wasNeverSent(cause)) return { ...UNSENT, code: 'not_sent', cause }
      // The head of an answer says that it was done, also where its body is lost.
      const done = status !== null && status < 300 && status !== 202
      return { ...LOST, status, executed: done ? 'yes' : 'unknown', code, cause }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', aborted)
      ended.catch(() => {})
    }
  }

  async function attempt(): Promise<Ended> {
    const sentAt = now()
    const ended = await exchange()
    const { status, code, executed, replayed } = ended
    breaker?.leave(code === 'offline' || signal?.aborted ? null : status !== null && status < 500)
    const told = { number: attempts.length + 1, key, status, code, executed, replayed, ms: now() - sentAt }
    attempts.push(told)
    tell([options.onAttempt, given.onAttempt], told)
    return ended
  }

  budget?.earn()
  for (let retries = 0; ; ) {
    await pass()
    last = await attempt()
    const { next, outcome, response, replayed, status } = last
    const code = last.code ?? `status_${status}`
    if (response && next === 'return' && (outcome || proved() === 'not_executed')) {
      return { response, key, attempts, replayed, ms: ms() }
    }
    if (signal?.aborted) throw failure('aborted', signal.reason)
    if (next === 'return' || next === 'stop') throw failure(code)
    if (next === 'retry') {
      if (++retries > maxRetries) throw failure(code)
      if (budget?.take() === false) throw failure('retry_budget_spent')
    }
    const delayMs = backoffMs(attempts.length, initialDelayMs, maxDelayMs)
    await wait(Math.max((response && retryAfterMs(response.headers)) ?? 0, delayMs), whyWaiting(last), code)
  }
}

function whyWaiting({ next, code, status }: Ended): WhyWaiting {
  if (next === 'wait') return 'in_progress'
  if (code === 'offline') return 'offline'
  return status === null ? 'no_answer' : 'refused_for_now'
}
