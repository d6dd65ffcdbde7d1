import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { cleanUpLater } from './clean-up.ts'
import { withClient } from './client.ts'
import { type PgBouncer, startPgBouncer } from './pgbouncer.ts'
import { POOLER } from './pooler.ts'
import { isAnswered } from './proxy.ts'
import { waitUntil } from './wait.ts'

export interface DurableServer extends Pick<EmbeddedServer, 'kill' | 'restart'> {
  /** What the product is given: in a run behind PgBouncer, one that stands in front of this server. */
  readonly url: string
  readonly serverUrl: string
}

/**
 * A server of one's own, migrated and durable, for tests that kill PostgreSQL. It is stopped, and its folder
 * removed, at the end of the test or of the test file.
 *
 * @example
 * const server = await startDurableServer()
 * await server.kill()
 * await server.restart()
 */
export async function startDurableServer(settings: Record<string, string> = {}): Promise<DurableServer> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-durable-'))
  let server: EmbeddedServer | undefined
  let bouncer: PgBouncer | undefined
  cleanUpLater(async () => {
    await bouncer?.stop()
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  })
  server = await startEmbeddedPostgres({ folder, settings })
  const { url: serverUrl, kill } = server
  await withClient(serverUrl, (client) => migrate(client, { schema: 'onlyonce', mode: 'apply' }))
  if (POOLER === 'transaction') bouncer = await startPgBouncer(serverUrl)
  const url = bouncer?.url(serverUrl) ?? serverUrl
  const restart = async () => {
    await server.restart()
    // A pooler has to find out by itself that its server is back.
    await waitUntil('the restarted server can be reached', () => isAnswered(url))
  }
  return { url, serverUrl, kill, restart }
}
