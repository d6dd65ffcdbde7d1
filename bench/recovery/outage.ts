import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type ClientOptions, idempotentFetch } from '../../src/client/index.ts'
import { makeFetch } from './send.ts'

const SERVER = fileURLToPath(new URL('./server.ts', import.meta.url))

export interface OutageOptions {
  /** Those who pay. Each waits for the end of its call before it begins the next. */
  readonly callers: number
  /** Each shares its budget and its circuit breaker among its callers. */
  readonly clients: number
  /** How often a caller begins a call. */
  readonly everyMs: number
  readonly beforeMs: number
  readonly downMs: number
  readonly afterMs: number
  readonly client: ClientOptions
}

/** What was seen. Times are counted from the moment at which the server went down. */
export interface Outage {
  /** When each attempt was sent. */
  readonly attemptsAt: readonly number[]
  readonly begun: number
  /** When each call ended with an answer, and when each was told that there is none. */
  readonly answeredAt: readonly number[]
  readonly failedAt: readonly number[]
}

/** Real clients, a real server in a process of its own, and real time. */
export async function runOutage(options: OutageOptions): Promise<Outage> {
  const { callers, clients, everyMs, beforeMs, downMs, afterMs } = options
  // With the loader of this process, if it has one.
  const server = fork(SERVER, { execArgv: ['--import', 'tsx'] })
  try {
    const [{ port }] = (await once(server, 'message')) as [{ port: number }]
    const attemptsAt: number[] = []
    const answeredAt: number[] = []
    const failedAt: number[] = []
    const downAt = performance.now() + beforeMs
    const now = () => performance.now() - downAt
    const endMs = downMs + afterMs
    let begun = 0
    const send = makeFetch()
    const sending = Array.from({ length: clients }, () =>
      idempotentFetch({
        ...options.client,
        baseUrl: `http://127.0.0.1:${port}`,
        fetch(input, init) {
          attemptsAt.push(now())
          return send(input, init)
        },
      }),
    )
    const call = async (caller: number) => {
      // Spread over the time between two calls, so that callers do not begin at once.
      for (let at = -beforeMs + (everyMs * caller) / callers; at < endMs; at += everyMs) {
        if (at < now()) continue
        await sleep(at - now())
        begun += 1
        const sent = sending[caller % clients]!('/', { method: 'POST', body: '{"amount":100}' })
        await sent.then(
          () => answeredAt.push(now()),
          () => failedAt.push(now()),
        )
      }
    }
    const calling = Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
    await sleep(beforeMs)
    await tell(server, 'down')
    await sleep(Math.max(0, downMs - now()))
    await tell(server, 'up')
    await calling
    return { attemptsAt, begun, answeredAt, failedAt }
  } finally {
    server.kill('SIGKILL')
  }
}

async function tell(server: ChildProcess, what: 'down' | 'up'): Promise<void> {
  const told = once(server, 'message')
  server.send(what)
  await told
}
