import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type EmbeddedServer, startEmbeddedPostgres } from 'onlyonce/embedded'
import pg from 'pg'

/** A disk of the database: one for its data, and another for its write-ahead log. */
export type Disk = 'data' | 'wal'

/** The database of a run: a durable server on two small disks of its own, so that each can be full. */
export interface Database {
  readonly url: string
  readonly host: string
  readonly port: number
  /** Whether the server's first process lives. */
  readonly alive: boolean
  kill(): Promise<void>
  start(): Promise<void>
  /** SIGSTOP and SIGCONT for the server and all its backends. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Leaves no free space on a disk, and gives it back. */
  fill(disk: Disk): void
  empty(disk: Disk): void
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
  const disks: Readonly<Record<Disk, string>> = { data: join(folder, 'data'), wal: join(folder, 'wal') }
  const unmount = () => {
    for (const disk of Object.values(disks)) {
      try {
        execFileSync('umount', ['-l', disk], { stdio: 'ignore' })
      } catch {
        // It was not mounted.
      }
    }
    rmSync(folder, { recursive: true, force: true })
  }
  let server: EmbeddedServer
  try {
    // The server runs as another user.
    chmodSync(folder, 0o755)
    for (const disk of Object.values(disks)) mount(disk)
    server = await startEmbeddedPostgres({
      folder: join(disks.data, 'server'),
      settings: { max_connections: '200', max_wal_size: '256MB', ...WITHOUT_SPARE_LOG, ...settings },
      ...(kind === 'debian' && { binaries: DEBIAN_BINARIES }),
    })
    await server.stop()
    moveLog(join(disks.data, 'server', 'data', 'pg_wal'), join(disks.wal, 'pg_wal'))
    await server.restart()
  } catch (error) {
    unmount()
    throw error
  }
  const { hostname, port } = new URL(server.url)
  return {
    url: server.url,
    host: hostname,
    port: Number(port),
    get alive() {
      return isAlive(server.pid)
    },
    kill: () => server.kill(),
    start: () => server.restart(),
    signal: (signal) => signalAll(server.pid, signal),
    fill: (disk) => fill(disks[disk]),
    empty: (disk) => resize(disks[disk], DISK_MB * 1_048_576),
    async query(text) {
      const client = new pg.Client({
        connectionString: server.url,
        connectionTimeoutMillis: 5_000,
        // The driver writes while the service may not.
        options: '-c default_transaction_read_only=off',
      })
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
      await server.kill().catch(() => {})
      unmount()
    },
  }
}

/** Segments of the log that are kept for later would hide for long that the disk is full. */
const WITHOUT_SPARE_LOG = { wal_recycle: 'off', min_wal_size: '32MB' }

function mount(disk: string): void {
  mkdirSync(disk)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m,mode=755`, 'tmpfs', disk], {
      stdio: 'pipe',
    })
  } catch (cause) {
    const { stderr } = cause as { stderr?: Buffer }
    throw new Error(
      `The database needs disks of its own, which can be full, and this process may not mount any (${String(stderr).trim()}). Run it as root; in a container, with the capability SYS_ADMIN.`,
      { cause },
    )
  }
}

/** No file is written for it: a disk becomes as small as what is on it. */
function resize(disk: string, bytes: number): void {
  execFileSync('mount', ['-o', `remount,size=${bytes}`, disk], { stdio: 'pipe' })
}

/** The server may write between the look and the change, and then the disk is larger than was asked for. */
function fill(disk: string): void {
  for (let tries = 0; ; tries += 1) {
    try {
      resize(disk, usedBytes(disk))
      return
    } catch (error) {
      if (tries >= 20) throw error
    }
  }
}

function usedBytes(disk: string): number {
  const { blocks, bfree, bsize } = statfsSync(disk)
  return (blocks - bfree) * bsize
}

function moveLog(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to])
  rmSync(from, { recursive: true })
  symlinkSync(to, from)
}

function isAlive(pid: number): boolean {
  try {
    // The number in a zombie's place is no server any more.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
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
