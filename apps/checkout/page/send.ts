/** Two ways to send a payment. The first one is what this project is about. */
import { type Attempt, idempotentFetch, type WhyWaiting } from 'onlyonce/client'
import { pendingAction } from 'onlyonce/client/keys'
import { type Order, payloadOf } from './order.ts'

/** What the page wants to know on the way. */
export interface Watcher {
  begins(key: string): void
  ended(attempt: Pick<Attempt, 'key' | 'status' | 'code' | 'replayed'>): void
  waits(ms: number, why: WhyWaiting): void
  resumes(): void
}

const PAYMENTS = '/checkout/line/v1/payments'
const ATTEMPT_TIMEOUT_MS = 2_500

const apiKey = document.querySelector<HTMLMetaElement>('meta[name="api-key"]')?.content
const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }

let watcher: Watcher | null = null

const pay = idempotentFetch({
  headers,
  attemptTimeoutMs: ATTEMPT_TIMEOUT_MS,
  maxRetries: 8,
  maxDelayMs: 2_000,
  statusUrl: '/checkout/line/v1/idempotency-keys/{key}',
  onAttempt: (attempt) => watcher?.ended(attempt),
  onWaiting: (ms, why) => watcher?.waits(ms, why),
  fetch(input, init) {
    const key = new Headers(init.headers).get('idempotency-key')
    if (key !== null) watcher?.begins(key)
    return fetch(input, init)
  },
})

const actionOf = ({ id }: Order) =>
  pendingAction(`checkout:${id}`, { user: 'demo', storage: localStorage, status: pay.status })

/** Its key is made once, kept, and sent with every attempt. A second call while one is under way joins it. */
export async function sendOnce(order: Order, watching: Watcher): Promise<number> {
  watcher = watching
  const payload = payloadOf(order)
  const { response } = await actionOf(order).run(payload, async ({ key, resumed }) => {
    if (resumed) watching.resumes()
    return await pay.send(PAYMENTS, { method: 'POST', body: JSON.stringify(payload), key, resumed })
  })
  return response.status
}

/** After a load: what the server knows of a payment that was under way; null where none is open. */
export const askAfterLoad = async (order: Order) => await actionOf(order).resume()

/** What many pages do: each try makes a key of its own, so the server sees several payments. */
export async function sendWithFreshKeys(order: Order, watching: Watcher): Promise<number> {
  for (let tries = 1; ; tries++) {
    const key = crypto.randomUUID()
    watching.begins(key)
    try {
      const response = await fetch(PAYMENTS, {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': key },
        body: JSON.stringify(payloadOf(order)),
        signal: AbortSignal.timeout(ATTEMPT_TIMEOUT_MS),
      })
      await response.text()
      watching.ended({ key, status: response.status, code: null, replayed: false })
      if (response.status < 500 && response.status !== 409) return response.status
      if (tries === TRIES_MAX) return response.status
    } catch (error) {
      const code = (error as Error).name === 'TimeoutError' ? 'timeout' : 'no_answer'
      watching.ended({ key, status: null, code, replayed: false })
      if (tries === TRIES_MAX) throw error
    }
    watching.waits(PAUSE_MS, 'no_answer')
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
}

const TRIES_MAX = 6
const PAUSE_MS = 1_000
