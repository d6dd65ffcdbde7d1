import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { cleanUpLater } from './clean-up.ts'
import { withClient } from './client.ts'

/**
 * A server of one's own, migrated and durable, for tests that kill PostgreSQL. It is stopped, and its folder
 * removed, at the end of the test or of the test file.
 *
 * @example
 * const server = await startDurableServer()
 * await server.kill()
 * await server.restart()
 */
export async function startDurableServer(settings: Record<string, string> = {}): Promise<EmbeddedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-durable-'))
  let server: EmbeddedServer | undefined
  cleanUpLater(async () => {
    await server?.stop()
    await rm(folder, { recursive: true, force: true })
  })
  server = await startEmbeddedPostgres({ folder, settings })
  await withClient(server.url, (client) => migrate(client, { schema: 'onlyonce', mode: 'apply' }))
  return server
}
