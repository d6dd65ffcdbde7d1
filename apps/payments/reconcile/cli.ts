/**
 * `npm run reconcile [-- --from 2026-03-01 --to 2026-03-02 --mode live --json]`: 0 if nothing differs, 1 if something does, 2 if
 * nobody could look. Without a time it is about yesterday, in UTC. The configuration is that of the service.
 */
import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type Config, readConfig } from '../config.ts'
import type { Gateway } from '../gateway/index.ts'
import { findSandbox } from '../gateways.ts'
import { type Gateways, openService, type Service } from '../service.ts'
import { differencesOf } from './compare.ts'
import { reconcile } from './reconcile.ts'
import { renderJson, renderTable } from './render.ts'
import { NOW } from './sql.ts'

const DAY_MS = 24 * 3_600_000

interface Options {
  readonly from: Date | null
  readonly to: Date | null
  readonly mode: string | null
  readonly json: boolean
}

function readOptions(args: readonly string[]): Options {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...args],
    options: { from: text, to: text, mode: text, json: { type: 'boolean' } },
  })
  const { from, to, mode = null, json = false } = values
  if (mode !== null && mode !== 'test' && mode !== 'live') throw new Error('--mode is test or live.')
  return { from: readTime('--from', from), to: readTime('--to', to), mode, json }
}

function readTime(name: string, text: string | undefined): Date | null {
  if (text === undefined) return null
  const form = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z)?$/
  const time = new Date(form.test(text) ? text : Number.NaN)
  // There is no 30th of February, but it would be taken for a day in March.
  if (Number.isNaN(time.getTime()) || !time.toISOString().startsWith(text.slice(0, 10))) {
    throw new Error(`${name} is a date such as 2026-03-01, or a time such as 2026-03-01T12:00:00Z.`)
  }
  return time
}

/** As the service runs, or as it would: beside one that runs in the same folder, with its database and its sandbox. */
async function configure(): Promise<Config> {
  const config = readConfig(process.env)
  if (config.database.kind === 'embedded' && !existsSync(config.folder)) {
    throw new Error(`Set DATABASE_URL: there is no database in ${config.folder} either.`)
  }
  const named = config.stripe !== null || config.gateway_url !== null
  return {
    ...config,
    gateway_url: named ? config.gateway_url : await findSandbox(config.folder),
    // What is printed may be read by a machine.
    log_level: 'silent',
  }
}

function choose(gateways: Gateways, mode: string | null): Gateway {
  const found = Object.values(gateways).filter((gateway: Gateway) => mode === null || gateway.mode === mode)
  if (found.length === 0) throw new Error(`No processor is set up for ${mode ?? 'any'} mode.`)
  if (found.length > 1)
    throw new Error('Processors are set up for both modes: say --mode test or --mode live.')
  return found[0]
}

/** Up to the last midnight, and a day long. */
async function chooseTime({ pool }: Service, given: Options): Promise<{ from: Date; to: Date }> {
  const now = Date.parse((await pool.query(NOW)).rows[0].now)
  const to = given.to ?? new Date(Math.floor(now / DAY_MS) * DAY_MS)
  const from = given.from ?? new Date(to.getTime() - DAY_MS)
  if (from >= to) throw new Error(`--from is before --to, which is ${to.toISOString()}.`)
  return { from, to }
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const service = await openService(await configure())
  try {
    const gateway = choose(service.gateways, options.mode)
    const { from, to } = await chooseTime(service, options)
    const { books, comparison, fresh } = await reconcile(service, gateway, { from, to })
    const about = { books, from: from.toISOString(), to: to.toISOString(), fresh }
    if (options.json) console.log(renderJson(comparison, about))
    else console.log(`${books}  ${about.from} to ${about.to}\n\n${renderTable(comparison)}`)
    return differencesOf(comparison).length === 0 ? 0 : 1
  } finally {
    await service.close()
  }
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code
  },
  (error: unknown) => {
    console.error(`The books could not be compared: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 2
  },
)
