/**
 * One of several processes that want the same lock. Speaks in lines of JSON. With ROUNDS it raises a counter so many
 * times, each time under the lock, by reading it and writing it back; without, it gets the lock, says its token, waits
 * for a line and then writes as if it still had it.
 */
import { once as event } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OnlyonceError, onlyonce } from '../../src/index.ts'
import { assertFence, locks } from '../../src/locks/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, ROUNDS, TTL_MS, AUTO_EXTEND } = process.env as Record<string, string>
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 3 })
const once = onlyonce({ store: postgres({ pool, pooler }), secret: 'a secret that all processes share.' })
const options = {
  account: 'acct_1',
  ttlMs: Number(TTL_MS),
  waitMs: 60_000,
  autoExtend: AUTO_EXTEND !== 'no',
}

async function raise(lock: Parameters<typeof assertFence>[1]): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    // Read and written back without a lock of its own: only the fence stands against a lost update.
    await assertFence(client, lock)
    const { rows } = await client.query('SELECT n FROM counters')
    await client.query('UPDATE counters SET n = $1', [rows[0].n + 1])
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

const tokens: number[] = []
let stale = 0
if (ROUNDS === undefined) {
  const lock = await locks(once).acquire('counter', options)
  say({ token: lock.token })
  await event(process.stdin, 'data')
  const code = await raise(lock).then(
    () => 'none',
    (error: unknown) => (error instanceof OnlyonceError ? error.code : 'other'),
  )
  say({ code, lost: lock.lost.aborted, released: await lock.release() })
} else {
  for (let round = 0; round < Number(ROUNDS); round += 1) {
    const lock = await locks(once).acquire('counter', options)
    // Long enough for the others to get it, where nobody keeps it alive.
    if (AUTO_EXTEND === 'no' && round % 2 === 0) await sleep(10 * Number(TTL_MS))
    try {
      await raise(lock)
      tokens.push(lock.token)
    } catch (error) {
      if (!(error instanceof OnlyonceError && error.code === 'fence_stale')) throw error
      stale += 1
    }
    await lock.release()
  }
  say({ tokens, stale })
}
await once.close()
await pool.end()
process.stdin.destroy()
