/**
 * `npm run reconcile [-- --from 2026-03-01 --to 2026-03-02 --mode live --json]`: 0 if nothing differs, 1 if something does, 2 if
 * nobody could look. Without a time it is about yesterday, in UTC. The configuration is that of the service.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, readConfig } from '../config.ts'
import type { Gateway } from '../gateway/index.ts'
import type { Gateways } from '../payments/index.ts'
import { findGateway } from '../sandbox.ts'
import { openService } from '../service.ts'
import { differencesOf } from './compare.ts'
import { chooseTime, readOptions } from './options.ts'
import { reconcile } from './reconcile.ts'
import { renderJson, renderTable } from './render.ts'
import { NOW } from './sql.ts'

/** As the service runs, or as it would: beside one that runs in the same folder, with its database and its sandbox. */
async function configure(): Promise<Config> {
  const config = readConfig(process.env)
  if (config.database.kind === 'embedded' && !existsSync(config.folder)) {
    throw new Error(`Set DATABASE_URL: there is no database in ${config.folder} either.`)
  }
  const named = config.stripe !== null || config.gatewayUrl !== null
  return {
    ...config,
    gatewayUrl: named ? config.gatewayUrl : await findGateway(join(config.folder, 'gateway')),
    // What is printed may be read by a machine.
    logLevel: 'silent',
    // Whoever asks wants to hear soon that nobody could look.
    waitMaxMs: 0,
  }
}

function choose(gateways: Gateways, mode: string | null): Gateway {
  const found = Object.values(gateways).filter((gateway: Gateway) => mode === null || gateway.mode === mode)
  if (found.length === 0) throw new Error(`No processor is set up for ${mode ?? 'any'} mode.`)
  if (found.length > 1)
    throw new Error('Processors are set up for both modes: say --mode test or --mode live.')
  return found[0]
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args)
  const service = await openService(await configure())
  try {
    const gateway = choose(service.gateways, options.mode)
    const { from, to } = chooseTime(options, new Date((await service.pool.query(NOW)).rows[0].now))
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
