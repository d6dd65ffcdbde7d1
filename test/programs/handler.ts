/** Works on one key inside a handler until it hears a line, and says what it was told in the end. */
import { once as event } from 'node:events'
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, KEY, LEASE_MS, RERUNNABLE } = process.env as Record<string, string>
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 2 })
pool.on('error', () => {})
const once = onlyonce({ store: postgres({ pool, pooler }), secret: 'a secret that all processes share.' })
const call = { account: 'acct_1', operation: 'orders.create', key: KEY!, input: 1 }
try {
  const result = await once.execute(
    { ...call, leaseMs: Number(LEASE_MS), rerunnable: RERUNNABLE === 'yes' },
    async ({ fence }) => {
      say({ working: fence })
      await event(process.stdin, 'data')
      return `by fence ${fence}`
    },
  )
  say(result)
} catch (error) {
  say({ code: (error as { code?: string }).code })
}
await once.close()
await pool.end()
process.stdin.destroy()
