import type { FastifyBaseLogger } from 'fastify'
import { type Onlyonce, type OnlyonceOptions, onlyonce } from 'onlyonce'
import { startEmbeddedPostgres } from 'onlyonce/embedded'
import { logTo } from 'onlyonce/observe'
import { operator } from 'onlyonce/operator'
import { outbox } from 'onlyonce/outbox'
import { type PostgresTx, postgres } from 'onlyonce/postgres'
import { prometheus } from 'onlyonce/prometheus'
import pg from 'pg'
import { Registry } from 'prom-client'
import { openLimits, type ServiceLimits } from './admission.ts'
import { Strangers } from './api/strangers.ts'
import type { Config } from './config.ts'
import { openFolder } from './data-folder.ts'
import { migrate } from './database/migrate.ts'
import { limitsPoolOptions, poolerOf, poolOptions, readsPoolOptions } from './database/pools.ts'
import { Reach } from './database/reach.ts'
import { Reads } from './database/reads.ts'
import { type OpenGateways, openGateways } from './gateways.ts'
import { keptSecret } from './kept-secret.ts'
import { LIMITS as SERVICE_LIMITS } from './limits.ts'
import { openLog } from './log.ts'
import { type ServiceCounts, serviceCounts } from './metrics.ts'
import { operationsOf, type ServiceOperations } from './operations.ts'
import type { Gateways } from './payments/index.ts'
import { booksOf } from './reconcile/index.ts'

/** All that routes and workers need. It is opened once in a process. */
export interface Service {
  readonly config: Config
  readonly pool: pg.Pool
  /** For routes that only read. */
  readonly reads: Reads
  readonly once: Onlyonce<PostgresTx>
  /** Without one for its mode, a request is refused as `mode_unavailable`. */
  readonly gateways: Gateways
  /** What processors sign their webhooks with. */
  readonly webhookSecrets: readonly string[]
  readonly operations: ServiceOperations
  readonly limits: ServiceLimits
  /** What addresses may try without a credential that is known. */
  readonly strangers: Strangers
  readonly log: FastifyBaseLogger
  readonly metrics: Registry
  readonly counts: ServiceCounts
  /** Opens /ops and /metrics. Null: nobody may. */
  readonly opsToken: string | null
  /** Lets what runs finish, hands over the rest, and lets go of the database and of the sandbox. */
  close(): Promise<void>
}

/** What a test puts in place of what the configuration would give. */
export interface OpenOptions {
  readonly gateways?: Gateways
  readonly once?: Partial<Omit<OnlyonceOptions<PostgresTx>, 'store'>>
  /** Ends a start that waits for its database. */
  readonly signal?: AbortSignal
}

/**
 * Opens the database, brings its tables up to date, and finds the processors.
 *
 * @example
 * const service = await openService(readConfig(process.env, process.argv.slice(2)))
 */
export async function openService(config: Config, options: OpenOptions = {}): Promise<Service> {
  const opened: (() => Promise<unknown>)[] = []
  const close = async () => {
    // What was opened last may need what was opened before it.
    for (const closeOne of opened.splice(0).reverse()) await closeOne()
  }
  try {
    const log = openLog(config.logLevel)
    const metrics = new Registry()
    const url = await openDatabase(config, opened)
    const pool = openPool(poolOptions(config, url), log, opened)
    const reach = new Reach({
      url,
      waitMaxMs: config.waitMaxMs,
      tell: (line) => console.error(line),
      ...(options.signal && { signal: options.signal }),
    })
    await reach.run(() => migrate(pool))
    const secret = config.secret ?? (await keptSecret(config.folder, 'onlyonce-secret'))
    const once = onlyonce({
      store: postgres({ pool, pooler: poolerOf(config), prepareWork: true }),
      secret,
      retentionMs: config.keys.retentionMs,
      ...(config.encryption !== null && { encryption: config.encryption }),
      ...(config.timing.reconcileAfterMs !== null && {
        reconcileAfterMs: config.timing.reconcileAfterMs,
      }),
      observe: [prometheus({ registry: metrics }), logTo(log)],
      ...options.once,
    })
    opened.push(() => once.close())
    await reach.run(() => once.start())
    const { gateways, webhookSecrets } =
      options.gateways === undefined
        ? await openTheGateways(config, opened)
        : givenGateways(options.gateways, config)
    const opsToken =
      config.database.kind === 'url'
        ? config.opsToken
        : (config.opsToken ?? (await keptSecret(config.folder, 'ops-token')))
    const limits = openLimits({
      config: config.limits,
      secret,
      pool: openPool(limitsPoolOptions(config, url), log, opened),
      workPool: pool,
      pooler: poolerOf(config),
      onTrouble: tellTrouble(log),
    })
    opened.push(async () => limits.stop())
    await reach.run(() => limits.start())
    const operations = operationsOf(
      {
        gateways,
        desk: operator(once),
        pool,
        begin: limits.begin,
        retentionMs: config.keys.retentionMs,
      },
      outbox(once),
    )
    return {
      config,
      pool,
      reads: new Reads(openPool(readsPoolOptions(config, url), log, opened), {
        pooled: poolerOf(config) !== 'none',
      }),
      once,
      gateways,
      webhookSecrets,
      operations,
      limits,
      strangers: new Strangers(config.limits.strangersPerMinute),
      log,
      metrics,
      counts: serviceCounts(metrics, Object.values(gateways).map(booksOf)),
      opsToken,
      close,
    }
  } catch (error) {
    await close().catch(() => {})
    throw error
  }
}

async function openTheGateways(
  config: Config,
  opened: (() => Promise<unknown>)[],
): Promise<Omit<OpenGateways, 'close'>> {
  const found = await openGateways(config)
  opened.push(found.close)
  return found
}

const givenGateways = (gateways: Gateways, { webhookSecrets }: Config) => ({ gateways, webhookSecrets })

/** Where the database is; an embedded one is started. */
async function openDatabase(
  { database, folder }: Config,
  opened: (() => Promise<unknown>)[],
): Promise<string> {
  if (database.kind === 'url') return database.url
  await openFolder(folder)
  const server = await startEmbeddedPostgres({ folder })
  opened.push(() => server.stop())
  return server.url
}

function openPool(
  options: pg.PoolConfig,
  log: FastifyBaseLogger,
  opened: (() => Promise<unknown>)[],
): pg.Pool {
  const pool = new pg.Pool(options)
  // An idle connection that breaks is replaced at its next use; unheard, the event would end the process.
  pool.on('error', (error) => {
    // Those of a pool that was ended may still be there when its server stops.
    if (!pool.ending) log.warn({ code: (error as { code?: string }).code }, 'a database connection was lost')
  })
  // The same for a connection that is lent, where its user is told by the query that fails.
  pool.on('connect', (client) => client.on('error', () => {}))
  opened.push(() => pool.end())
  return pool
}

/** Not for each request: where the database is away, every account has its trouble. */
function tellTrouble(log: FastifyBaseLogger): (error: unknown) => void {
  let toldMs = Number.NEGATIVE_INFINITY
  return (error) => {
    if (performance.now() < toldMs + SERVICE_LIMITS.limitsTroubleToldEveryMs) return
    toldMs = performance.now()
    log.warn(
      { err: error },
      'limits cannot be counted: each process counts rates by itself, and cards are not charged',
    )
  }
}
