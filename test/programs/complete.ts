/**
 * A completer, and nothing else: says that it is ready, begins when it is told, and ends when nothing is left to do. Says
 * what it has done.
 */
import { once as event } from 'node:events'
import pg from 'pg'
import { onlyonce } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { completer } from '../../src/workers/index.ts'
import { LEAVING, leave } from '../torture/abandoned.ts'
import { OLD_SECRET } from '../torture/payments.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL } = process.env as Record<string, string>
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 10 })
pool.on('error', () => {})
const failed: string[] = []
const once = onlyonce({
  store: postgres({ pool, pooler }),
  secret: OLD_SECRET,
  operations: [leave(async () => {})],
  observe: {
    signal(told) {
      if (told.signal === 'reconcile_failed') failed.push(told.failure.message)
    },
  },
})
await once.start()
say({ ready: LEAVING })
await event(process.stdin, 'data')
const worker = completer(once, { graceMs: 1 })
const isLeft = async () => {
  const { rowCount } = await pool.query("SELECT FROM onlyonce.records WHERE state = 'in_progress' LIMIT 1")
  return rowCount !== 0
}
let [done, batches] = [0, 0]
while (await isLeft()) {
  done += (await worker.runOnce()).done
  batches += 1
}
say({ done, batches, failed })
await once.close()
await pool.end()
process.stdin.destroy()
