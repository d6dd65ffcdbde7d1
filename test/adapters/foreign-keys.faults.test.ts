import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FastifyRequest, fastify } from 'fastify'
import { describe, expect, it } from 'vitest'
import { idempotency, idempotent } from '../../src/http/adapters/fastify/index.ts'
import { openShop } from '../contract/shop.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { waitUntil } from '../setup/wait.ts'
import { Client, type Received } from './client.ts'
import { listening } from './servers/listen.ts'

const PAIRS = 150
/** Half of what has to be noticed; with four other busy processes on two cores a median still stayed below it. */
const NOTICED_MS = 1
/** A machine may be busy during one measurement; a difference that is there is there in all of them. */
const TRIES_MAX = 3

interface Served {
  readonly client: Client
  /** Keys whose requests take two milliseconds more. */
  readonly slow: Set<string>
  /** Opens the gate for handlers that wait at it. */
  open(): void
  readonly waiting: number
}

/** POST /things answers at once, POST /held when the gate is open. */
async function serve(protect: 'handler' | 'transaction'): Promise<Served> {
  const shop = await openShop()
  const app = fastify()
  const slow = new Set<string>()
  await app.register(idempotency, {
    once: shop.open(),
    protect,
    account: async ({ headers }: FastifyRequest) => {
      if (slow.has(headers['idempotency-key'] as string)) await sleep(2)
      return headers['x-account'] as string
    },
  })
  let [open, waiting] = [() => {}, 0]
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  app.post('/things', { preHandler: idempotent() }, async (_, reply) => reply.code(201).send({ done: true }))
  app.post('/held', { preHandler: idempotent() }, async (request, reply) => {
    if (request.headers['x-account'] === 'acct_1') {
      waiting += 1
      await gate
    }
    return reply.code(201).send({ done: true })
  })
  await app.ready()
  const { port, close } = await listening(app.server)
  cleanUpLater(async () => {
    open()
    await close()
  })
  return {
    client: new Client(port),
    slow,
    open,
    get waiting() {
      return waiting
    },
  }
}

/** Keys that the other account has used, with another body. */
async function useKeys({ client }: Served): Promise<string[]> {
  const keys = Array.from({ length: PAIRS }, () => randomUUID())
  const used = await Promise.all(
    keys.map((key) => client.send({ key, account: 'acct_1', body: { mine: 1 } })),
  )
  for (const { status } of used) expect(status).toBe(201)
  return keys
}

/** What a client can see of a reply, the time of day aside. */
function visible({ status, statusText, rawHeaders, text }: Received): unknown {
  return {
    status,
    statusText,
    headers: rawHeaders.filter((_, i) => rawHeaders[i - (i % 2)] !== 'Date'),
    text,
  }
}

/** Sends foreign and unused keys in turns, and gives the median of how much longer a foreign one took than its neighbour. */
async function differenceMs({ client }: Served, foreign: readonly string[]): Promise<number> {
  const timed = async (key: string) => {
    const startMs = performance.now()
    const received = await client.send({ key, account: 'acct_2' })
    return { tookMs: performance.now() - startMs, seen: visible(received) }
  }
  const differences: number[] = []
  for (const [i, key] of foreign.entries()) {
    const unused = randomUUID()
    const [a, b] = i % 2 === 0 ? [key, unused] : [unused, key]
    const [first, second] = [await timed(a), await timed(b)]
    expect(first.seen).toEqual(second.seen)
    differences.push((first.tookMs - second.tookMs) * (i % 2 === 0 ? 1 : -1))
  }
  return differences.sort((x, y) => x - y)[Math.floor(differences.length / 2)]!
}

/** The smallest difference of some measurements, which stop as soon as one is small enough. */
async function smallestDifferenceMs(measure: () => Promise<number>): Promise<number> {
  let smallestMs = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TRIES_MAX && smallestMs > NOTICED_MS; tries += 1) {
    smallestMs = Math.min(smallestMs, Math.abs(await measure()))
  }
  return smallestMs
}

describe.each(['handler', 'transaction'] as const)("another account's key, with protect: '%s'", (protect) => {
  it('is like an unused one, in what is answered and when', { timeout: 120_000 }, async () => {
    const served = await serve(protect)
    const slowerByMs = await smallestDifferenceMs(async () => differenceMs(served, await useKeys(served)))
    expect(slowerByMs).toBeLessThan(NOTICED_MS)
  })

  it('would be noticed if it took two milliseconds more', { timeout: 120_000 }, async () => {
    const served = await serve(protect)
    const slowerByMs = await smallestDifferenceMs(async () => {
      const keys = await useKeys(served)
      for (const key of keys) served.slow.add(key)
      return await differenceMs(served, keys)
    })
    expect(slowerByMs).toBeGreaterThan(NOTICED_MS)
  })

  it('is like an unused one while it is in progress there', async () => {
    const served = await serve(protect)
    const key = randomUUID()
    const theirs = served.client.send({ key, path: '/held', account: 'acct_1' })
    await waitUntil('it is in progress', () => served.waiting === 1)
    const foreign = await served.client.send({ key, path: '/held', account: 'acct_2' })
    const unused = await served.client.send({ path: '/held', account: 'acct_2' })
    expect(visible(foreign)).toEqual(visible(unused))
    expect(foreign.status).toBe(201)
    served.open()
    expect((await theirs).status).toBe(201)
  })
})
