import { spawn } from 'node:child_process'
import { open, rename, stat } from 'node:fs/promises'
import { type Cluster, explainUnreachable, serverEnvironment } from './cluster.ts'
import { EMBEDDED_LIMITS } from './limits.ts'

/** Settings by name, as in postgresql.conf. */
export type Settings = Readonly<Record<string, string>>

/** A server process that was started and may not answer yet. */
export interface Launched {
  readonly pid: number | undefined
  /** The log that it wrote, once it is over; undefined while it runs. */
  ended(): Promise<string | undefined>
}

/**
 * What differs from PostgreSQL's own defaults. The log keeps starts, recoveries and fatal errors, not failed
 * statements: those quote customers' data, and collisions of keys would fill the disk.
 */
const DEFAULTS: Settings = { log_min_messages: 'log', log_checkpoints: 'off' }

/**
 * Starts a server process on loopback. It leads a process group of its own, so that Ctrl-C at a terminal
 * reaches the service alone, which still needs its database to drain.
 *
 * @example
 * const launched = await launch(cluster, 15432, { max_connections: '200' })
 */
export async function launch(cluster: Cluster, port: number, settings: Settings): Promise<Launched> {
  await setLogAside(cluster.logFile)
  const log = await open(cluster.logFile, 'a', 0o600)
  const logStart = (await log.stat()).size
  try {
    const child = spawn(cluster.binaries.postgres, buildArguments(cluster, port, settings), {
      ...cluster.account,
      cwd: cluster.data,
      env: serverEnvironment(),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    let over: string | undefined
    child.once('error', (error: NodeJS.ErrnoException) => {
      over = error.code === 'EACCES' ? explainUnreachable(cluster) : error.message
    })
    child.once('exit', (code, signal) => {
      over ??= `The server ended with ${signal ?? `code ${code}`}.`
    })
    child.unref()
    const ended = async () => over && `${over} ${await readLog(cluster.logFile, logStart)}`.trim()
    return { pid: child.pid, ended }
  } finally {
    await log.close()
  }
}

function buildArguments(cluster: Cluster, port: number, settings: Settings): string[] {
  const all: Settings = {
    ...DEFAULTS,
    ...settings,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // Who started it, and with what, is a property of the running server: no file can be out of step with it.
    'onlyonce.owner_pid': String(process.pid),
    'onlyonce.settings': canonicalSettings(settings),
  }
  const assignments = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', cluster.data, '-p', String(port), ...assignments]
}

/**
 * Settings as one string, the same for the same settings in any order.
 *
 * @example
 * canonicalSettings({ b: '2', a: '1' }) // [["a","1"],["b","2"]]
 */
export function canonicalSettings(settings: Settings): string {
  return JSON.stringify(Object.entries(settings).sort(([a], [b]) => (a < b ? -1 : 1)))
}

async function setLogAside(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined)
  if (found !== undefined && found.size > EMBEDDED_LIMITS.logSizeMaxBytes) await rename(file, `${file}.old`)
}

async function readLog(file: string, start: number): Promise<string> {
  const handle = await open(file, 'r')
  try {
    const { size } = await handle.stat()
    const from = Math.max(start, size - EMBEDDED_LIMITS.logTailLengthMax)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(size - from, 0)), 0, null, from)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await handle.close()
  }
}
