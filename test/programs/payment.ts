/**
 * A process of a payment service: with KEY it is a request, and says what it was told; without, it is the workers, until
 * its input ends. With STOP it stops itself just before its first call, and with DEAF it does not listen to the signal of
 * a call; it dies where ONLYONCE_CRASH_AT says.
 */
import { writeSync } from 'node:fs'
import pg from 'pg'
import { onlyonce, operation, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { crashPointFromEnvironment } from '../../src/testing/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { gatewayClient } from '../gateway/client.ts'
import { ACCOUNT, OLD_SECRET, PAY, PAYMENT, type Payment, payAt } from '../torture/payments.ts'
import { pooler } from './pooler.ts'

const {
  DATABASE_URL,
  GATEWAY_URL,
  KEY,
  LEASE_MS,
  DEADLINE_MS,
  DEDUPES,
  SETTLE_MS,
  LOOKS,
  STOP,
  DEAF,
  RELEASE,
} = process.env as Record<string, string>
const say = (message: object) => process.stdout.write(`${JSON.stringify(message)}\n`)

const gateway = gatewayClient(GATEWAY_URL!)
const calls: Promise<unknown>[] = []
const charge: typeof gateway.charge = (charge, { key, signal }) => {
  const called = gateway.charge(charge, DEAF === undefined ? { key, ...(signal && { signal }) } : { key })
  calls.push(called)
  return called
}
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 6 })
pool.on('error', () => {})
const pay = payAt(
  { ...gateway, charge },
  {
    idempotent: DEDUPES !== 'no',
    ...(SETTLE_MS !== undefined && { visibleWithinMs: Number(SETTLE_MS) }),
  },
)
/** The release after: other steps, other keys for everything, and the code of the one before beside it. */
const payAnew = operation(`${PAY}@2`, async (op, _: Payment) => reply(201, { charge: `none for ${op.key}` }))
const ring = {
  current: 'new',
  keys: { default: OLD_SECRET, new: 'a newer secret that all processes share.' },
}
const secret = RELEASE === '2' ? ring : OLD_SECRET

let stopped = STOP === undefined
const crash = crashPointFromEnvironment()
const once = onlyonce({
  store: postgres({ pool, pooler }),
  secret,
  ...(RELEASE !== undefined && { encryption: secret }),
  operations: [pay],
  reconcileAfterMs: Array.from({ length: Number(LOOKS ?? 1_000) }, () => 1),
  crashPoint(point) {
    crash(point)
    if (stopped || point !== 'operation.call.before') return
    stopped = true
    writeSync(1, '{"stopping":true}\n')
    process.kill(process.pid, 'SIGSTOP')
    // The signal may take a moment to arrive. Not one more instruction of the program runs meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  },
})
const lease = { leaseMs: Number(LEASE_MS ?? 30_000) }

async function request(): Promise<void> {
  const deadline = DEADLINE_MS === undefined ? {} : { deadlineMs: Number(DEADLINE_MS) }
  const call = { account: ACCOUNT, key: KEY!, input: PAYMENT, ...lease, ...deadline }
  const told = await once
    .run(RELEASE === '2' ? payAnew : pay, call)
    .catch(({ code }: { code?: string }) => ({ code }))
  // Nobody waits for them any more; but they are on their way.
  await Promise.allSettled(calls)
  say(told)
}

async function work(): Promise<void> {
  let wanted = true
  process.stdin.once('end', () => {
    wanted = false
  })
  process.stdin.resume()
  const workers = [completer(once, { ...lease, graceMs: 1 }), reconciler(once, lease)]
  while (wanted) {
    for (const worker of workers) await worker.runOnce()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

await (KEY === undefined ? work() : request())
await once.close()
await pool.end()
gateway.close()
process.stdin.destroy()
