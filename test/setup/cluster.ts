import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { addressWithin, withClient } from './client.ts'

const MEMORY_FREE_MIN_BYTES = 4 * 1024 ** 3

declare module 'vitest' {
  export interface ProvidedContext {
    /** A server where databases may be created. */
    adminUrl: string
    /** A migrated database to clone; nobody can connect to it. */
    template: string
  }
}

/**
 * The server that all tests of a run share: the one in DATABASE_URL, or an embedded one in a fresh folder.
 *
 * @example
 * // vitest.config.ts
 * export default defineConfig({ test: { globalSetup: ['test/setup/cluster.ts'] } })
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await openServer()
  const run = randomBytes(4).toString('hex')
  const template = `onlyonce_template_${run}`
  const teardown = async () => {
    try {
      // A server that ends takes its databases with it; one that was lent gets back what it was.
      if (server.lent) await dropDatabases(server.url, [template, `onlyonce_test_${run}_%`])
    } finally {
      await server.close()
    }
  }
  try {
    await createTemplate(server.url, template)
  } catch (error) {
    await teardown()
    throw error
  }
  project.provide('adminUrl', server.url)
  project.provide('template', template)
  return teardown
}

/** Whoever starts several runs opens it once for all of them, and lends it by DATABASE_URL. */
export async function openServer(): Promise<{ url: string; lent: boolean; close(): Promise<void> }> {
  const url = process.env.DATABASE_URL
  if (url) return { url, lent: true, close: async () => {} }
  const folder = await mkdtemp(join(await chooseParent(), 'onlyonce-tests-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    // Nobody cuts the power of this server: tests that do start a durable one of their own.
    const settings = { max_connections: '400', max_wal_size: '256MB', fsync: 'off', full_page_writes: 'off' }
    const binaries = process.env.ONLYONCE_TEST_BINARIES
    const server = await startEmbeddedPostgres({ folder, settings, ...(binaries && { binaries }) })
    return { url: server.url, lent: false, close: () => server.stop().finally(remove) }
  } catch (error) {
    await remove()
    throw error
  }
}

/**
 * Memory, where there is enough of it: cloning the template makes some 300 files, which was measured to take 15 ms
 * in memory and up to 250 ms on a disk, with fsync off in both.
 */
async function chooseParent(): Promise<string> {
  const memory = '/dev/shm'
  const space = await statfs(memory).catch(() => undefined)
  return space !== undefined && space.bavail * space.bsize >= MEMORY_FREE_MIN_BYTES ? memory : tmpdir()
}

async function createTemplate(adminUrl: string, name: string): Promise<void> {
  await withClient(adminUrl, (client) => client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`))
  await withClient(addressWithin(adminUrl, name), (client) =>
    migrate(client, { schema: 'onlyonce', mode: 'apply' }),
  )
  // A database that somebody is connected to cannot be cloned, so nobody may connect, not even a vacuum worker.
  await withClient(adminUrl, (client) =>
    client.query(`ALTER DATABASE ${pg.escapeIdentifier(name)} ALLOW_CONNECTIONS false`),
  )
}

async function dropDatabases(adminUrl: string, patterns: string[]): Promise<void> {
  await withClient(adminUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      'SELECT datname FROM pg_database WHERE datname LIKE ANY ($1::text[])',
      [patterns],
    )
    for (const { datname } of rows) {
      await client.query(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(datname)} WITH (FORCE)`)
    }
  })
}
