import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from 'onlyonce/embedded'
import pg from 'pg'

/** The database of a run: a durable server on a small disk of its own, so that the disk can be filled. */
export interface Database {
  readonly url: string
  readonly host: string
  readonly port: number
  kill(): Promise<void>
  start(): Promise<void>
  /** SIGSTOP and SIGCONT for the server and all its backends. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Takes all free space of the disk, and gives it back. */
  fillDisk(): void
  freeDisk(): void
  /** Statements of the driver's own, past all proxies. */
  query(text: string): Promise<pg.QueryResult>
  close(): Promise<void>
}

const DISK_MB = 1_500
export const DEBIAN_BINARIES = '/usr/lib/postgresql/15/bin'

export async function openDatabase(
  kind: 'embedded' | 'debian',
  settings: Readonly<Record<string, string>>,
): Promise<Database> {
  const folder = mkdtempSync(join(tmpdir(), 'onlyonce-torture-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=755`, 'tmpfs', folder])
  const unmount = () => {
    execFileSync('umount', ['-l', folder])
    rmSync(folder, { recursive: true, force: true })
  }
  let server: Awaited<ReturnType<typeof startEmbeddedPostgres>>
  try {
    server = await startEmbeddedPostgres({
      folder: join(folder, 'server'),
      settings: { max_connections: '200', max_wal_size: '256MB', ...settings },
      ...(kind === 'debian' && { binaries: DEBIAN_BINARIES }),
    })
  } catch (error) {
    unmount()
    throw error
  }
  const ballast = join(folder, 'ballast')
  const freeDisk = () => rmSync(ballast, { force: true })
  const { hostname, port } = new URL(server.url)
  return {
    url: server.url,
    host: hostname,
    port: Number(port),
    kill: () => server.kill(),
    start: () => server.restart(),
    signal: (signal) => signalAll(server.pid, signal),
    fillDisk() {
      try {
        writeFileSync(ballast, Buffer.alloc(DISK_MB * 1_048_576))
      } catch {
        // Full: that is what it is for.
      }
    },
    freeDisk,
    async query(text) {
      const client = new pg.Client({ connectionString: server.url, connectionTimeoutMillis: 10_000 })
      client.on('error', () => {})
      await client.connect()
      try {
        return await client.query(text)
      } finally {
        await client.end().catch(() => {})
      }
    },
    async close() {
      signalAll(server.pid, 'SIGCONT')
      freeDisk()
      await server.kill().catch(() => {})
      unmount()
    },
  }
}

/** The postmaster and its children: a stopped postmaster alone would leave the open sessions at work. */
function signalAll(pid: number, signal: NodeJS.Signals): void {
  const children = execFileSync('sh', ['-c', `pgrep -P ${pid} || true`], { encoding: 'utf8' })
  for (const each of [pid, ...children.split('\n').filter(Boolean).map(Number)]) {
    try {
      process.kill(each, signal)
    } catch {
      // It ended meanwhile.
    }
  }
}
