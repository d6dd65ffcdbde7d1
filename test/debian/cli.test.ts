/** Every command against the PostgreSQL 15 of Debian. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { type EmbeddedServer, startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { testCommands } from '../cli/commands.ts'

let folder: string
let server: EmbeddedServer

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'onlyonce-debian-cli-'))
  server = await startEmbeddedPostgres({ folder, binaries: '/usr/lib/postgresql/15/bin' })
})

afterAll(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

testCommands(() => server.url)
