/**
 * One of several processes that send the same key at the same time. Speaks in lines of JSON: says `ready`,
 * waits for a line, sends the key from many callers while bystanders with keys of their own go by, says when
 * the bystanders are through, and at last what every caller was told.
 */
import { randomUUID } from 'node:crypto'
import { once as event } from 'node:events'
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, KEY, CALLERS, EXCLUSIVE, GATE } = process.env as Record<string, string>
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 2 })
const once = onlyonce({
  store: postgres({ pool, pooler, lockWaitMaxMs: 60_000, idleInTransactionMaxMs: 60_000 }),
  secret: 'a secret that all processes share.',
})
await once.start()
say({ ready: true })
await event(process.stdin, 'data')

const call = { account: 'acct_1', operation: 'orders.create', key: KEY!, input: { amount: 4200 } }
const callers = Array.from({ length: Number(CALLERS) }, () =>
  once.transaction({ ...call, exclusive: EXCLUSIVE === 'yes' }, async (tx) => {
    // A sequence is not rolled back, so it counts executions, not effects.
    await tx.query(`SELECT nextval('executions')`)
    // The gate is closed until all bystanders of all processes are through.
    await tx.query('SELECT pg_advisory_xact_lock_shared($1)', [GATE])
    const { rows } = await tx.query('INSERT INTO effects (key) VALUES ($1) RETURNING id', [KEY])
    return { id: Number(rows[0]!.id) }
  }),
)
for (let i = 0; i < 20; i += 1) {
  await once.transaction({ ...call, key: randomUUID() }, async (tx) => {
    await tx.query('INSERT INTO effects (key) VALUES ($1)', ['bystander'])
  })
}
say({ bystanders: 20 })
say({ told: await Promise.all(callers) })
await once.close()
await pool.end()
process.stdin.destroy()
