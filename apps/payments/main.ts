/** Starts the service: `npm start`, or `npm start -- --role api` and `--role worker` side by side. */
import type { AddressInfo } from 'node:net'
import { ensureDemoAccount } from './accounts/index.ts'
import { buildApi } from './api/index.ts'
import { readConfig } from './config.ts'
import { Interrupted } from './database/reach.ts'
import { openService, type Service } from './service.ts'
import { explain } from './start-trouble.ts'
import { welcome } from './welcome.ts'
import { runWorkers } from './workers.ts'

/** How long requests may take that are under way when the end is near. Longer than any call to a processor. */
const DRAIN_MAX_MS = 25_000

interface Running {
  readonly service: Service
  /** Where it listens; null for a worker without a port. */
  readonly address: string | null
  /** First no new requests and no new batches, then nothing that runs, then no database. */
  drain(): Promise<void>
}

async function start(signal: AbortSignal): Promise<Running> {
  const service = await openService(readConfig(process.env, process.argv.slice(2)), { signal })
  const { role, demo, host, port, portGiven } = service.config
  try {
    if (demo) await ensureDemoAccount(service.pool)
    const app = role !== 'worker' || portGiven ? await buildApi(service) : null
    await app?.listen({ host, port })
    const workers = role === 'api' ? null : runWorkers(service)
    return {
      service,
      address: app === null ? null : addressOf(app.server.address() as AddressInfo),
      async drain() {
        const force = setTimeout(() => app?.server.closeAllConnections(), DRAIN_MAX_MS)
        await Promise.all([app?.close(), workers?.stop()])
        clearTimeout(force)
        await service.close()
      },
    }
  } catch (error) {
    await service.close().catch(() => {})
    throw error
  }
}

function addressOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}

/** A start can be ended too: at once while it waits for its database, else as soon as it is over. */
function drainOnSignals(started: Promise<Running>, waiting: AbortController): void {
  let draining = false
  const onSignal = async () => {
    // Whoever asks twice does not want to wait: whatever is left is found and finished by others.
    if (draining) process.exit(1)
    draining = true
    waiting.abort()
    try {
      await (await started).drain()
      process.exit(0)
    } catch (error) {
      if (error instanceof Interrupted) process.exit(0)
      console.error(`The drain failed: ${(error as Error).message}`)
      process.exit(1)
    }
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onSignal)
}

const waiting = new AbortController()
const started = start(waiting.signal)
drainOnSignals(started, waiting)
try {
  const { service, address } = await started
  console.log(welcome(service, address))
} catch (error) {
  if (error instanceof Interrupted) process.exit(0)
  console.error(explain(error))
  process.exit(1)
}
