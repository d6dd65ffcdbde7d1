/**
 * A process that serves every adapter on a port of its own, and runs the workers, as a user would: pools without a listener of any
 * kind, and no handler for uncaught errors. It says on its first line where each of them listens.
 */
import pg from 'pg'
import { onlyonce, operation, type Queryable, reply } from '../../src/index.ts'
import { postgres } from '../../src/store/postgres/index.ts'
import { startWorkers } from '../../src/workers/index.ts'
import { ADAPTERS } from '../adapters/servers/all.ts'
import type { Route } from '../adapters/under-test.ts'
import { BOUNDS, type FloodRoute, POOL_SIZE } from '../flood/bounds.ts'
import { pooler } from './pooler.ts'

const noteOrder = operation('flood.order', async (op, input: { readonly note: string }) => {
  await op.transaction('noted', (tx) => insert(tx, input.note))
  const charge = await op.call('charged', { call: async ({ key }) => ({ key }), idempotent: true })
  return await op.transaction('settled', async (tx) => {
    await insert(tx, charge.key)
    return reply(201, { done: true })
  })
})

async function insert(tx: Queryable, note: string): Promise<void> {
  await tx.query('INSERT INTO effects (note) VALUES ($1)', [note])
}

function route(path: FloodRoute, policy: Route['policy'], handle: Route['handle']): Route {
  return { method: 'POST', path, prefix: '', order: 'layer_first', policy, handle }
}

const done = { do: 'json', status: 201, value: { done: true } } as const

const routes: readonly Route[] = [
  route('/transaction', { protect: 'transaction', ...BOUNDS.route }, async ({ once }) => {
    await insert(once!.tx, 'transaction')
    return done
  }),
  route('/handler', BOUNDS.route, async () => done),
  route('/operation', { operation: noteOrder as never, ...BOUNDS.route }, async () => done),
]

function open() {
  const { DATABASE_URL } = process.env
  const pool = new pg.Pool({
    connectionString: DATABASE_URL!,
    max: POOL_SIZE,
    connectionTimeoutMillis: BOUNDS.store.connectionWaitMaxMs,
  })
  return onlyonce({
    store: postgres({ pool, pooler, ...BOUNDS.store }),
    secret: 'the secret of a service that is flooded',
    operations: [noteOrder],
  })
}

const ports: Record<string, number> = {}
for (const adapter of ADAPTERS) ports[adapter.name] = (await adapter.serve(open(), routes)).port
startWorkers(open(), { everyMs: 50 })
process.stdout.write(`${JSON.stringify(ports)}\n`)
