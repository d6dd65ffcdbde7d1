/**
 * A payment whose processor refuses its first key for ever, until an operator declares that call void. Dies where
 * ONLYONCE_CRASH_AT says. With MODE=finish it does what is left, as workers, an operator and a client would.
 */
import pg from 'pg'
import { derivedKey } from '../../src/entries/keys.ts'
import { type CallContext, callRefused, type Found, onlyonce, operation, reply } from '../../src/index.ts'
import { operator } from '../../src/operator/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { reportPoints } from '../../src/testing/index.ts'
import { completer, reconciler } from '../../src/workers/index.ts'
import { gatewayClient } from '../gateway/client.ts'
import type { ChargeResult } from '../gateway/wire.ts'
import { waitUntil } from '../setup/wait.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, GATEWAY_URL, RUN, MODE } = process.env as Record<string, string>
const gateway = gatewayClient(GATEWAY_URL!)
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 4 })
pool.on('error', () => {})

const id = { account: 'acct_1', operation: 'crash.void', key: `void-${RUN}` }
const remembered = derivedKey({ ...id, step: 'charged' })

const pay = operation('crash.void', async (op) => {
  await op.transaction('created', async (tx) => {
    await tx.query('INSERT INTO effects (key) VALUES ($1)', [`${id.key} created`])
  })
  const charge = await op.call('charged', {
    call: async ({ key, signal }: CallContext) => {
      // For good, so that the first time that anything is asked is behind the decision.
      if (key === remembered) throw callRefused(new Error('500, as before'))
      return await gateway.charge({ amount: 500, reference: id.key }, { key, signal })
    },
    find: async ({ key, signal }: CallContext) =>
      (await gateway.findByKey(key, { signal })) as Found<ChargeResult>,
  })
  return op.transaction('settled', async (tx) => {
    await tx.query('INSERT INTO effects (key) VALUES ($1)', [`${id.key} settled`])
    return reply(201, { charge: charge.id })
  })
})

const once = onlyonce({
  store: postgres({ pool, pooler }),
  secret: 'a secret that all processes share.',
  crashPoint: reportPoints(),
  operations: [pay],
  reconcileAfterMs: [1],
  // What is parked on purpose here is a warning of the process without an observer.
  observe: { signal() {} },
})
const LEASE = { leaseMs: 300, inProgressMaxMs: 30_000 }
const call = { account: id.account, key: id.key, input: undefined, ...LEASE }

/** Looks, decides and sends again, whatever the record says, until it is completed. */
async function goOn(): Promise<void> {
  await waitUntil(
    'the payment is made',
    async () => {
      await completer(once, { ...LEASE, graceMs: 1 }).runOnce()
      await reconciler(once, LEASE).runOnce()
      const { state, record } = await operator(once).show(id)
      if (state === 'parked' && record?.waitsFor === remembered) {
        const signed = { by: 'ann', why: 'it repeats its refusal' }
        await operator(once).resolve(id, { ...signed, allowRetry: true, earlierCallIsVoid: true })
      } else if (state === 'parked') throw new Error(`parked for another reason: ${record?.failure?.code}`)
      if (state === 'none' || state === 'retryable') await once.run(pay, call)
      return state === 'completed'
    },
    30_000,
  )
}

if (MODE !== 'finish') await once.run(pay, call)
await goOn()
await once.close()
await pool.end()
gateway.close()
