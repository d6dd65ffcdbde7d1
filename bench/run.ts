/**
 * npm run bench -- <suite> [--json] [--rounds n] [--round-ms n]
 *
 * Prints a table; with --json the last line is one JSON object. Everything is a ratio measured in one run.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { core } from './core.ts'
import { http } from './http.ts'
import { startEmbeddedPostgres } from './library.ts'
import { operations } from './operations.ts'
import { orm } from './orm.ts'
import { payments } from './payments.ts'
import { relayed } from './relay.ts'
import { printJson, printTable, type Report } from './report.ts'
import { withinClient } from './within.ts'

export interface Bench {
  readonly url: string
  readonly rounds: number
  readonly roundMs: number
}

const SUITES: Readonly<Record<string, (bench: Bench) => Promise<Report>>> = {
  core,
  http,
  operations,
  relay: relayed,
  payments,
  within: withinClient,
  orm,
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '9' },
    'round-ms': { type: 'string', default: '2000' },
  },
})
const suite = SUITES[positionals[0] ?? '']
if (suite === undefined || positionals.length !== 1) {
  console.error(
    `Usage: npm run bench -- <${Object.keys(SUITES).join('|')}> [--json] [--rounds n] [--round-ms n]`,
  )
  process.exit(2)
}

const folder = await mkdtemp(join(tmpdir(), 'onlyonce-bench-'))
// Durable, as in production, and with memory for the million records; otherwise as PostgreSQL comes.
const server = await startEmbeddedPostgres({
  folder,
  settings: { shared_buffers: '1GB', max_wal_size: '4GB', checkpoint_timeout: '30min' },
})
try {
  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  const { server_version: serverVersion } = (await client.query('SHOW server_version')).rows[0]
  await client.end()
  const report = await suite({
    url: server.url,
    rounds: Number(values.rounds),
    roundMs: Number(values['round-ms']),
  })
  printTable(report)
  if (values.json) printJson(report, serverVersion)
} finally {
  await server.stop()
  await rm(folder, { recursive: true })
}
