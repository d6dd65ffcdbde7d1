import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type pg from 'pg'
import type { Onlyonce } from '../../src/index.ts'
import { outbox, type Relay, relay } from '../../src/outbox/index.ts'
import type { PostgresTx } from '../../src/store/postgres/index.ts'
import { type Webhooks, type WebhooksOptions, webhooks } from '../../src/webhooks/index.ts'
import { listening } from '../adapters/servers/listen.ts'
import { type OpenOptions, openShop, type Shop } from '../contract/shop.ts'
import { inTransaction, runDry } from '../outbox/office.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

export const account = 'acct_1:test'

/** A post as a receiver got it. */
export interface Got {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

export interface Receiver {
  readonly url: string
  readonly got: readonly Got[]
  /** The ids of the messages that came, in their order. */
  ids(): readonly string[]
  /** What it answers from now on. */
  answer: (got: Got, response: ServerResponse) => void
}

/** A real server that takes what it is sent. */
export async function openReceiver(): Promise<Receiver> {
  const got: Got[] = []
  const receiver: Receiver = {
    url: '',
    got,
    ids: () => got.map(({ headers }) => headers['webhook-id'] as string),
    answer: (_, response) => void response.writeHead(204).end(),
  }
  const server = createServer(async (request, response) => {
    const one = { path: request.url!, headers: request.headers, body: await buffer(request) }
    got.push(one)
    receiver.answer(one, response)
  })
  const { port, close } = await listening(server)
  cleanUpLater(close)
  return Object.assign(receiver, { url: `http://127.0.0.1:${port}/hooks` })
}

/** Everything between an event and its receivers. */
export interface Desk {
  readonly shop: Shop
  readonly once: Onlyonce<PostgresTx>
  readonly pool: pg.Pool
  readonly hooks: Webhooks
  readonly office: Relay
  emit(events: number, of?: { account?: string; type?: string }): Promise<readonly string[]>
  /** Fans out what was emitted. */
  fanOut(): Promise<void>
  /** Delivers what is due, and waits for all of it. */
  deliver(): Promise<void>
  /** Emits, fans out and delivers. */
  send(events: number, of?: { account?: string; type?: string }): Promise<readonly string[]>
  /** As if the time until every next attempt had passed. */
  hurry(): Promise<void>
  rows(table: string): Promise<Record<string, unknown>[]>
}

export async function openDesk(options: WebhooksOptions = {}, open: OpenOptions = {}): Promise<Desk> {
  const shop = await openShop()
  const once = shop.open(open)
  const pool = shop.database.pool({ max: 2 })
  const hooks = webhooks(once, { allowPrivate: true, timeoutMs: 10_000, ...options })
  const office = relay(once, { destinations: { webhooks: hooks.destination } })
  const worker = hooks.deliverer()
  await office.runOnce()
  const emit: Desk['emit'] = (events, { account: whose = account, type = 'payment.captured' } = {}) =>
    inTransaction(pool, (tx) =>
      outbox(once).emit(
        tx,
        Array.from({ length: events }, (_, n) => ({
          account: whose,
          type,
          payload: { n, amount: 1_050, note: 'größe' },
          aggregate: `payment:${n}`,
        })),
      ),
    )
  // A run leaves behind what takes long, and says nothing of it: another one sees whether there is more.
  const fanOut = async () => {
    for (let idle = 0; idle < 2; ) {
      const { done, more } = await office.runOnce()
      await office.drain()
      idle = more || done > 0 ? 0 : idle + 1
    }
  }
  const deliver = () => runDry(worker)
  return {
    shop,
    once,
    pool,
    hooks,
    office,
    emit,
    fanOut,
    deliver,
    async send(events, of) {
      const ids = await emit(events, of)
      await fanOut()
      await deliver()
      return ids
    },
    async hurry() {
      await shop.observer.query(
        'UPDATE onlyonce.webhook_deliveries SET due_at = clock_timestamp() WHERE due_at IS NOT NULL',
      )
    },
    async rows(table) {
      return (await shop.observer.query(`SELECT * FROM onlyonce.${table}`)).rows
    },
  }
}
