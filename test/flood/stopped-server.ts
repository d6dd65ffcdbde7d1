import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../../src/store/embedded/index.ts'
import { listChildren, sendSignal } from '../../src/store/embedded/process.ts'
import { cleanUpLater } from '../setup/clean-up.ts'

export interface StoppableServer {
  readonly url: string
  /** SIGSTOP to the server and all its backends: connections stay open, new ones are taken by the kernel, nobody answers. */
  stall(): void
  /** SIGCONT: what was asked meanwhile is answered now. */
  goOn(): void
}

/** A PostgreSQL of one's own that can be stopped: that of all tests would stop the others too. */
export async function startStoppableServer(): Promise<StoppableServer> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-flood-'))
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '200' }
  const server = await startEmbeddedPostgres({ folder, settings })
  let stalled: number[] = []
  const goOn = () => {
    for (const pid of stalled.splice(0)) sendSignal(pid, 'SIGCONT')
  }
  cleanUpLater(async () => {
    goOn()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  })
  return {
    url: server.url,
    stall() {
      // The server first: it would make backends that are in no list.
      sendSignal(server.pid, 'SIGSTOP')
      stalled = [server.pid, ...listChildren(server.pid)]
      for (const pid of stalled) sendSignal(pid, 'SIGSTOP')
    },
    goOn,
  }
}
