import pg from 'pg'
import { documentedAnswers, documentedReasons } from './judge/documented.ts'
import type { Attempt, Database, History, ProcessLife } from './judge/history.ts'
import { CANARY } from './phones.ts'
import type { Site } from './site.ts'

/** Reads everything that a run has left, for the judge. The site still runs. */
export async function gather(
  site: Site,
  run: {
    readonly scenario: string
    readonly seed: number
    readonly log: readonly Attempt[]
    readonly quietS: number | null
    readonly quietLimitS: number
    readonly docs: string
  },
): Promise<Omit<History, 'processes'>> {
  const database = await withClient(site.database.url, readDatabase)
  const journal = site.journal()
  return {
    scenario: run.scenario,
    seed: run.seed,
    attempts: run.log,
    journal,
    database,
    endpoints: site.accounts.map(({ account, path }) => ({ account, path })),
    deliveries: site.sink.deliveries,
    canarySeenIn: [
      ...(await withClient(site.database.url, tablesWithCanary)),
      ...placesIn(
        'the answers',
        run.log.map(({ text }) => text),
      ),
      ...placesIn(
        'the webhooks',
        site.sink.deliveries.map(({ body }) => body),
      ),
      ...placesIn('the journal', [JSON.stringify(journal)]),
    ],
    quietS: run.quietS,
    quietLimitS: run.quietLimitS,
    documented: documentedAnswers(run.docs),
    parkReasons: documentedReasons(run.docs),
  }
}

/** Every life of every process, when all of them have ended. */
export function livesOf({
  servers,
  workers,
  processor,
}: Pick<Site, 'servers' | 'workers' | 'processor'>): readonly ProcessLife[] {
  return [...servers, ...workers, processor].flatMap(({ lives }) => lives)
}

async function withClient<T>(url: string, read: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await read(client)
  } finally {
    await client.end()
  }
}

async function readDatabase(client: pg.Client): Promise<Database> {
  const all = async <T>(text: string) => (await client.query(text)).rows as T[]
  return {
    records: await all(
      'SELECT account, operation, key, state, reply_status::int, error_code FROM onlyonce.records',
    ),
    payments: await all(`SELECT account, id, status, amount::float8, currency, idempotency_key, gateway_id,
      captured::float8, refunded::float8 FROM payments.payments`),
    captures: await all(
      'SELECT account, payment, id, amount::float8, status, idempotency_key FROM payments.captures',
    ),
    refunds: await all(
      'SELECT account, payment, id, amount::float8, status, idempotency_key FROM payments.refunds',
    ),
    transfers: await all(
      'SELECT account, id, destination, amount::float8, currency, status FROM payments.transfers',
    ),
    entries: await all(
      'SELECT account, transaction, ledger_account, currency, amount::float8, state FROM payments.ledger_entries',
    ),
    events: await all('SELECT account, id::text, aggregate, sequence::float8, type FROM onlyonce.events'),
    pendingMessages: await all(
      "SELECT account, message::text AS id FROM onlyonce.webhook_deliveries WHERE state = 'pending'",
    ),
  }
}

/** Looks into every text, JSON and byte column of every table. */
async function tablesWithCanary(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query(`SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'`)
  const found: string[] = []
  for (const { table_schema: tableSchema, table_name: tableName } of rows as {
    table_schema: string
    table_name: string
  }[]) {
    const table = `${pg.escapeIdentifier(tableSchema)}.${pg.escapeIdentifier(tableName)}`
    const { rows: hits } = await client.query(
      `SELECT 1 FROM ${table} AS row WHERE regexp_replace(row::text, '[^0-9a-f]', '', 'g') ~ $1 LIMIT 1`,
      // As text, and as bytea shows it.
      [`${CANARY}|${Buffer.from(CANARY).toString('hex')}`],
    )
    if (hits.length > 0) found.push(`table ${tableSchema}.${tableName}`)
  }
  return found
}

export function placesIn(place: string, texts: readonly string[]): string[] {
  const found = texts.some((text) => text.replace(/[ -]/g, '').includes(CANARY))
  return found ? [place] : []
}
