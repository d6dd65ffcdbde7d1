/**
 * Walks through every path of durable operations, and dies where ONLYONCE_CRASH_AT says. With MODE=work it is the
 * background alone: it finishes whatever another process has left, and its clients never come back.
 */
import pg from 'pg'
import { derivedKey } from '../../src/entries/keys.ts'
import { type CallContext, type Found, onlyonce, operation, type Queryable, reply } from '../../src/index.ts'
import { outbox, relay } from '../../src/outbox/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { reportPoints } from '../../src/testing/index.ts'
import { addEvidence, completer, reaper, reconciler } from '../../src/workers/index.ts'
import { gatewayClient } from '../gateway/client.ts'
import type { ChargeResult, Control } from '../gateway/wire.ts'
import { waitUntil } from '../setup/wait.ts'
import { pooler } from './pooler.ts'

const { DATABASE_URL, GATEWAY_URL, RUN, MODE } = process.env as Record<string, string>
const gateway = gatewayClient(GATEWAY_URL!)
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 6 })
pool.on('error', () => {})

interface Payment {
  readonly name: string
}

const referenceOf = (name: string) => `${name}-${RUN}`
const charging = ({ name }: Payment) => ({
  call: ({ key, signal }: CallContext) =>
    gateway.charge({ amount: 500, reference: referenceOf(name) }, { key, signal }),
  find: async ({ key, signal }: CallContext) =>
    (await gateway.findByKey(key, { signal })) as Found<ChargeResult>,
  result: (value: unknown) => {
    if (typeof (value as ChargeResult | null)?.id !== 'string') throw new Error('no charge')
    return value as ChargeResult
  },
  // For longer than the record is kept, so that its owner says so before the call.
  keyLifetimeMs: 72 * 3_600_000,
})
const note = async (tx: Queryable, text: string): Promise<void> => {
  await tx.query('INSERT INTO effects (key) VALUES ($1)', [text])
}

/** Takes until the owner has given a sign of life, or has lost the record. */
async function untilSignOfLife(key: string): Promise<void> {
  const leaseOf = async () => {
    const found = await pool.query('SELECT lease_until::text FROM onlyonce.records WHERE key = $1', [key])
    return found.rows[0]?.lease_until
  }
  const first = await leaseOf()
  await waitUntil('a sign of life', async () => (await leaseOf()) !== first)
}

/** Write, call, write; with something in between that takes longer than a part of the lease. */
const pay = operation('crash.pay', async (op, payment: Payment) => {
  const reference = referenceOf(payment.name)
  await op.transaction('created', (tx) => note(tx, `${reference} created`))
  if (payment.name === 'slow') await untilSignOfLife(reference)
  if (payment.name === 'abandoned' && MODE !== 'work' && !abandoned) {
    abandoned = true
    await new Promise(() => {})
  }
  const charge = await op.call('charged', charging(payment))
  return op.transaction('settled', async (tx) => {
    await note(tx, `${reference} settled`)
    await op.emit(tx, 'payment.captured', { reference }, { aggregate: reference })
    return reply(201, { charge: charge.id })
  })
})
let abandoned = false

/** A call first, and then another: each result is durable before the next call. */
const payEarly = operation('crash.early', async (op, payment: Payment) => {
  const charge = await op.call('charged', charging(payment))
  const again = await op.call('looked_up', { call: async () => gateway.findByKey('nobody') })
  return reply(201, { charge: charge.id, again: again.status })
})

/** Charges, and gives it back because it cannot go on. */
const payAndUndo = operation('crash.saga', async (op, payment: Payment) => {
  const charge = await op.call('charged', charging(payment))
  op.compensate('refunded', {
    call: ({ key, signal }) => gateway.refund({ charge: charge.id }, { key, signal }),
    find: ({ key, signal }: CallContext) => gateway.findByKey(key, { signal }),
  })
  await op.transaction('noted', (tx) => note(tx, `${referenceOf(payment.name)} noted`))
  op.compensate('note_undone', (tx) => note(tx, `${referenceOf(payment.name)} undone`))
  return op.undo(reply(409, { why: 'out of stock' }))
})

const once = onlyonce({
  store: postgres({ pool, pooler }),
  secret: 'a secret that all processes share.',
  crashPoint: reportPoints(),
  operations: [pay, payEarly, payAndUndo],
  reconcileAfterMs: Array.from({ length: 50 }, () => 1),
})
/** Somebody outside who is told. */
const telling = relay(once, {
  leaseMs: 600,
  publishTimeoutMs: 300,
  destinations: {
    books: async (events) => {
      for (const { payload } of events) {
        const { reference } = payload as { reference: string }
        await pool.query('INSERT INTO told (reference) VALUES ($1)', [reference])
      }
    },
  },
})
const LEASE = { leaseMs: 300, inProgressMaxMs: 30_000 }
const atOnce = { ...LEASE, graceMs: 1 }
const callOf = (name: string) => ({ account: 'acct_1', key: referenceOf(name), input: { name }, ...LEASE })
const count = async (condition: string): Promise<number> => {
  const found = await pool.query(`SELECT count(*)::int AS n FROM onlyonce.records WHERE ${condition}`)
  return found.rows[0].n
}

/** One way through each path, always in the same order. */
async function walk(): Promise<void> {
  await once.run(pay, callOf('plain'))
  await once.run(pay, callOf('slow'))
  await misbehave('early', 'crash.early', { fault: 'lose', at: 'after' })
  await once.run(payEarly, callOf('early'))
  await once.run(payAndUndo, callOf('saga'))
  await once.run(pay, { ...callOf('abandoned'), leaseMs: 100, inProgressMaxMs: 100 }).catch(() => {})
  const lapsed = `state = 'in_progress' AND lease_until < clock_timestamp() - interval '2 ms'`
  await waitUntil('the lease is over', async () => (await count(lapsed)) > 0)
  await completer(once, atOnce).runOnce()
  await misbehave('doubtful', 'crash.pay', { fault: 'lose', at: 'after', times: 9 })
  await misbehave('doubtful', 'crash.pay', { fault: 'pending', on: 'lookup', times: 9 })
  await once.run(pay, callOf('doubtful'))
  await control({ behave: true })
  await addEvidence(once, {
    account: 'acct_1',
    key: callKeyOf('doubtful', 'crash.pay'),
    result: 'not a charge',
  })
  await waitUntil('it is time to look', async () => (await count('look_at < clock_timestamp()')) > 0)
  await reconciler(once, LEASE).runOnce()
  await telling.runOnce()
  await reaper(once, { mode: 'delete' }).runOnce()
}

function misbehave(name: string, of: string, fault: Control): Promise<void> {
  return control({ ...fault, key: callKeyOf(name, of) } as Control)
}

function callKeyOf(name: string, of: string): string {
  return derivedKey({ account: 'acct_1', operation: of, key: referenceOf(name), step: 'charged' })
}

async function control(body: Control): Promise<void> {
  await fetch(`${GATEWAY_URL}/control`, { method: 'POST', body: JSON.stringify(body) })
}

if (MODE === 'work') {
  await control({ behave: true })
  await waitUntil('nothing is unfinished', async () => {
    await completer(once, atOnce).runOnce()
    await reconciler(once, LEASE).runOnce()
    return (await count(`state IN ('in_progress', 'unknown') AND key LIKE '%${RUN}'`)) === 0
  })
  await waitUntil('all events are told', async () => {
    await telling.runOnce()
    return (await outbox(once).lag()).every((lag) => lag.count === 0)
  })
} else await walk()
await telling.drain()
await once.close()
await pool.end()
gateway.close()
