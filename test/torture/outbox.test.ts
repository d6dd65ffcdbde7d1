import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { onlyonce } from '../../src/index.ts'
import { type OutboxEvent, outbox, relay } from '../../src/outbox/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { random } from '../../src/testing/index.ts'
import { expectOrder, inTransaction } from '../outbox/office.ts'
import { cleanUpLater } from '../setup/clean-up.ts'
import { startDurableServer } from '../setup/database.ts'
import { POOLER } from '../setup/pooler.ts'
import { waitUntil } from '../setup/wait.ts'

const CRASHES = 5
const EMITTERS = 6
const SEED = 11

function openPool(url: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  cleanUpLater(() => pool.end())
  return pool
}

describe('PostgreSQL killed while events leave it', () => {
  it(`loses no event that was committed, and no order, ${CRASHES} times`, { timeout: 300_000 }, async () => {
    const server = await startDurableServer()
    const pool = openPool(server.url, EMITTERS)
    const open = () =>
      onlyonce({ store: postgres({ pool: openPool(server.url, 4), pooler: POOLER }), secret: 's'.repeat(32) })
    const once = open()
    await once.start()
    const { emit, lag } = outbox(once)
    const got: OutboxEvent[] = []
    const committed = new Set<string>()
    let [emitting, relaying] = [true, true]
    const emitters = Array.from({ length: EMITTERS }, async (_, n) => {
      for (let count = 0; emitting; count += 1) {
        const event = { account: 'acct_1', type: 't', payload: count, aggregate: `a:${(n + count) % 8}` }
        await inTransaction(pool, (tx) => emit(tx, event)).then(
          ([id]) => committed.add(id!),
          () => sleep(5),
        )
      }
    })
    const relays = [once, open()].map(async (door) => {
      const destinations = { ledger: async (events: readonly OutboxEvent[]) => void got.push(...events) }
      // A relay whose lanes were lost with the server waits for its own lease: here, not for long.
      const worker = relay(door, { destinations, leaseMs: 1_000, publishTimeoutMs: 400 })
      while (relaying) if (!(await worker.runOnce().catch(() => ({ more: false }))).more) await sleep(2)
      await worker.drain()
    })

    const { integer } = random(SEED)
    for (let crash = 0; crash < CRASHES; crash += 1) {
      const enough = got.length + 200 + integer(200)
      await waitUntil('enough was delivered', () => got.length >= enough, 60_000)
      await server.kill()
      await server.restart()
    }
    emitting = false
    await Promise.all(emitters)
    const isOut = async () => (await lag().catch(() => [{ count: 1 }])).every(({ count }) => count === 0)
    await waitUntil('all is out', isOut, 60_000)
    relaying = false
    await Promise.all(relays)

    const delivered = new Set(got.map(({ id }) => id))
    expect([...committed].filter((id) => !delivered.has(id))).toEqual([])
    const seen = new Set<string>()
    expectOrder(got.filter(({ id }) => !seen.has(id) && seen.add(id)))
    console.log(
      `${CRASHES} crashes; ${committed.size} committed, ${delivered.size} delivered, ${got.length} deliveries`,
    )
  })
})
