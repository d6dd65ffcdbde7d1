/**
 * Wants the record of another process, all the time: as a completer without patience, and as a client that retries. Says
 * what it was told each time, and ends when it is told the result.
 */
import pg from 'pg'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { completer } from '../../src/workers/index.ts'
import { ACCOUNT, note, OLD_SECRET, PAYMENT, type Payment } from '../torture/payments.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, KEY, OPERATION } = process.env as Record<string, string>
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 6 })
pool.on('error', () => {})
let tried = 0
/** Where it is taken over, this is what comes behind the first step. */
const taken = operation(OPERATION!, async (op, _: Payment) => {
  await op.transaction('created', (tx) => note(tx, `${op.key} created`))
  return op.transaction('slow', async (tx) => {
    await note(tx, `${op.key} taken`)
    return reply(201, { by: 'the taker' })
  })
})
const once = onlyonce({
  // Waits for nobody for long, so that it tries often.
  store: postgres({ pool, pooler, lockWaitMaxMs: 20 }),
  secret: OLD_SECRET,
  operations: [taken],
  crashPoint: (point) => {
    if (point === 'operation.take_over.before') tried += 1
  },
})
const call = { account: ACCOUNT, key: KEY!, input: PAYMENT, leaseMs: 5_000, deadlineMs: 60 }
await once.start()
say({ ready: true })
for (let outcome = ''; outcome !== 'replayed' && outcome !== 'executed'; ) {
  const { done } = await completer(once, { graceMs: 1 }).runOnce()
  ;({ outcome } = await once.run(taken, call))
  say({ done, outcome, tried })
  await new Promise((resolve) => setTimeout(resolve, 5))
}
await once.close()
await pool.end()
