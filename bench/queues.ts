/** Four ways to get something out of PostgreSQL, each as its makers would set it up for throughput. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { onlyonce, outbox, postgres, relay } from './library.ts'

/** Items in one insert, and those that a consumer takes at once: all four have a way to do many. */
export const BATCH = 500
const CONSUMERS = [1, 2, 3, 4]
/** How long a consumer that found nothing waits. */
const IDLE_MS = 2
const secret = 'a secret for the benchmark, which protects nothing.'

export interface Queue {
  readonly name: string
  /** Puts one batch in, numbered from `first` on. */
  put(first: number): Promise<unknown>
  /** Hands items out, in this process, until it is told to stop. */
  consume(took: (count: number) => void): Promise<() => Promise<void>>
  /** Between rounds: what is done with is removed, so that every round begins alike. */
  empty(): Promise<unknown>
  close(): Promise<unknown>
}

const numbers = (first: number) => Array.from({ length: BATCH }, (_, n) => first + n)

/** Consumers that ask again as soon as they have done something. */
function loop<Consumer>(
  consumers: readonly Consumer[],
  step: (consumer: Consumer) => Promise<boolean>,
): () => Promise<void> {
  let on = true
  const loops = consumers.map(async (consumer) => {
    while (on) if (!(await step(consumer))) await sleep(IDLE_MS)
  })
  return async () => {
    on = false
    await Promise.all(loops)
  }
}

async function inTransaction(pool: pg.Pool, work: (tx: pg.PoolClient) => Promise<unknown>): Promise<void> {
  const tx = await pool.connect()
  try {
    await tx.query('BEGIN')
    await work(tx)
    await tx.query('COMMIT')
  } finally {
    tx.release()
  }
}

/** Five events of each aggregate, whose order has to be kept; the others keep none. */
export async function openRelay(url: string): Promise<Queue> {
  const pool = openPool(url)
  const once = onlyonce({ store: postgres({ pool }), secret })
  await once.start()
  const { emit } = outbox(once)
  let [run, told]: [number, (count: number) => void] = [0, () => {}]
  const open = () => relay(once, { destinations: { bench: async (events) => told(events.length) } })
  const workers = [open(), open()]
  for (const worker of workers) await worker.runOnce()
  return {
    name: 'relay',
    put: (first) =>
      inTransaction(pool, (tx) =>
        emit(
          tx,
          numbers(first).map((n) => ({
            account: 'acct_1',
            type: 'n',
            payload: { n },
            aggregate: `payment:${run}:${Math.floor(n / 5)}`,
          })),
        ),
      ),
    async consume(took) {
      ;[run, told] = [run + 1, took]
      return loop(workers, async (worker) => (await worker.runOnce()).more)
    },
    empty: () => pool.query('TRUNCATE onlyonce.events, onlyonce.batches, onlyonce.fresh'),
    close: () => closeBoth(once, pool),
  }
}

export async function openJobs(url: string): Promise<Queue> {
  const pool = openPool(url)
  const once = onlyonce({ store: postgres({ pool }), secret })
  await once.start()
  const { stage } = outbox(once)
  let told: (count: number) => void = () => {}
  // One: two that want the same jobs at once get in each other's way.
  const workers = [relay(once, { jobs: { n: async () => told(1) }, jobsAtOnce: BATCH })]
  return {
    name: 'jobs',
    put: (first) =>
      inTransaction(pool, (tx) =>
        stage(
          tx,
          numbers(first).map((n) => ({ account: 'acct_1', job: 'n', payload: { n } })),
        ),
      ),
    async consume(took) {
      told = took
      return loop(workers, async (worker) => (await worker.runOnce()).more)
    },
    empty: () => pool.query('TRUNCATE onlyonce.jobs'),
    close: () => closeBoth(once, pool),
  }
}

/** With its calls for batches. Its own loop asks twice a second at most, so this one asks in its place. */
export async function openPgBoss(url: string): Promise<Queue> {
  const Boss = peer('pg-boss') as unknown as new (options: object) => Boss
  const boss = new Boss({ connectionString: url, max: 8, supervise: false, schedule: false })
  // The server may be stopped before the last connection is.
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue('n')
  return {
    name: 'pg_boss',
    put: (first) => boss.insert(numbers(first).map((n) => ({ name: 'n', data: { n } }))),
    async consume(took) {
      return loop(CONSUMERS, async () => {
        const jobs = await boss.fetch('n', { batchSize: BATCH })
        if (jobs.length === 0) return false
        took(jobs.length)
        await boss.complete(
          'n',
          jobs.map(({ id }) => id),
        )
        return true
      })
    },
    empty: () => boss.clearStorage(),
    close: () => boss.stop({ wait: true }),
  }
}

/** With its local queue and its batched completions, which are what its authors measure with. */
export async function openGraphileWorker(url: string): Promise<Queue> {
  const graphile = peer('graphile-worker') as unknown as Graphile
  const pool = openPool(url)
  const logger = new graphile.Logger(() => () => {})
  const utils = await graphile.makeWorkerUtils({ pgPool: pool, logger })
  await utils.migrate()
  return {
    name: 'graphile_worker',
    put: (first) => utils.addJobs(numbers(first).map((n) => ({ identifier: 'n', payload: { n } }))),
    async consume(took) {
      const runner = await graphile.run({
        pgPool: pool,
        concurrency: 24,
        noHandleSignals: true,
        pollInterval: 10,
        logger,
        taskList: { n: async () => took(1) },
        preset: {
          worker: {
            localQueue: { size: BATCH, refetchDelay: { durationMs: IDLE_MS } },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
      })
      return () => runner.stop()
    },
    empty: async () => {},
    close: async () => {
      await utils.release()
      await pool.end()
    },
  }
}

/** Installed for the benchmark alone, from a package of their own. */
export function installPeers(): void {
  if (existsSync(new URL('node_modules', PEERS))) return
  execFileSync('npm', ['ci', '--prefix', fileURLToPath(PEERS)], { stdio: 'inherit' })
}

const PEERS = new URL('./peers/', import.meta.url)
const peer = (name: string): object => createRequire(new URL('package.json', PEERS))(name)

async function closeBoth(once: { close(): Promise<void> }, pool: pg.Pool): Promise<void> {
  await once.close()
  await pool.end()
}

function openPool(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** As much of the peers as is used here: their own types are there only once they are installed. */
interface Boss {
  on(event: 'error', hear: (error: Error) => void): void
  start(): Promise<unknown>
  stop(options: object): Promise<void>
  createQueue(name: string): Promise<void>
  insert(jobs: readonly object[]): Promise<void>
  fetch(name: string, options: object): Promise<readonly { readonly id: string }[]>
  complete(name: string, ids: readonly string[]): Promise<void>
  clearStorage(): Promise<void>
}

interface Graphile {
  Logger: new (make: () => () => void) => object
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>
    addJobs(jobs: readonly object[]): Promise<unknown>
    release(): Promise<void>
  }>
  run(options: object): Promise<{ stop(): Promise<void> }>
}
