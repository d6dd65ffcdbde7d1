import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { chooseAccount } from '../../src/store/embedded/account.ts'
import { pickPort } from '../../src/store/embedded/port.ts'
import { addressWithin, withClient } from './client.ts'

/** Debian's package. */
const PROGRAM = '/usr/sbin/pgbouncer'
/** The database that PgBouncer answers for by itself. */
export const CONSOLE = 'pgbouncer'
const START_TRIES_MAX = 5
const START_MAX_MS = 20_000
const START_POLL_MS = 20

/** Connections to the server for each pair of database and user: as few as can make anything wait for anything. */
export const SERVER_CONNECTIONS = 2

export interface PgBouncer {
  /** The same address by way of the pooler. */
  url(serverUrl: string): string
  stop(): Promise<void>
}

/**
 * PgBouncer in transaction mode, in front of the server of `serverUrl` and of all its databases.
 *
 * @example
 * const bouncer = await startPgBouncer(server.url)
 * const pool = new pg.Pool({ connectionString: bouncer.url(server.url) })
 */
export async function startPgBouncer(
  serverUrl: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-pgbouncer-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const { child, port } = await launch(folder, serverUrl, settings)
    return {
      url: (url) => atPort(url, port),
      async stop() {
        await end(child)
        await remove()
      },
    }
  } catch (error) {
    await remove()
    throw error
  }
}

/** The port was free when it was picked, and may be taken when it is used. */
async function launch(
  folder: string,
  serverUrl: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ child: ChildProcess; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const port = await pickPort()
    const child = await spawnWith(
      folder,
      serverUrl,
      configFor(serverUrl, { listen_port: `${port}`, ...settings }),
    )
    const complaint = await untilItAnswers(child, atPort(serverUrl, port))
    if (complaint === null) return { child, port }
    await end(child)
    if (tries === START_TRIES_MAX) throw new Error(`PgBouncer does not start: ${complaint}`)
  }
}

async function spawnWith(folder: string, serverUrl: string, text: string): Promise<ChildProcess> {
  const { username, password } = new URL(serverUrl)
  const config = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'users.txt')
  await writeFile(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`)
  await writeFile(config, `${text}auth_file = ${users}\n`)
  const account = await chooseAccount()
  if (account !== undefined)
    for (const path of [folder, config, users]) await chown(path, account.uid, account.gid)
  const child = spawn(PROGRAM, ['-q', config], { ...account, stdio: ['ignore', 'ignore', 'pipe'] })
  await once(child, 'spawn')
  // A run that is given up must not leave it behind.
  const killAtExit = () => child.kill('SIGKILL')
  process.on('exit', killAtExit)
  child.once('exit', () => process.off('exit', killAtExit))
  return child
}

/**
 * - A database that is dropped takes its connections with it, so idle ones are no trouble; they are let go after
 *   a second for tests that count who is connected.
 * - A server that was away is asked again at once, and not after fifteen seconds: tests bring it back. So is one
 *   whose answer to a login was swallowed on the way.
 * - Users that are not in the file (tests make some) are looked up in the server.
 */
function configFor(serverUrl: string, more: Readonly<Record<string, string>>): string {
  const { hostname, port, username } = new URL(serverUrl)
  const settings = {
    listen_addr: '127.0.0.1',
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_user: decodeURIComponent(username),
    admin_users: decodeURIComponent(username),
    pool_mode: 'transaction',
    default_pool_size: `${SERVER_CONNECTIONS}`,
    max_client_conn: '2000',
    server_idle_timeout: '1',
    server_login_retry: '0.1',
    server_connect_timeout: '2',
    ...more,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`)
  return `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join('')}`
}

/**
 * Null when it answers; otherwise what it said before it ended. Its console is asked, and not the server behind it:
 * a test may want nobody to have been there before.
 */
async function untilItAnswers(child: ChildProcess, url: string): Promise<string | null> {
  let said = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    said = `${said}${chunk}`.slice(-2_000)
  })
  const until = performance.now() + START_MAX_MS
  while (performance.now() < until) {
    if (child.exitCode !== null) return said
    try {
      await withClient(addressWithin(url, CONSOLE), (client) => client.query('SHOW VERSION'))
      return null
    } catch (error) {
      said = String(error)
      await sleep(START_POLL_MS)
    }
  }
  return `no answer within ${START_MAX_MS} ms. ${said}`
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  // Not SIGINT, which waits for its clients.
  child.kill('SIGTERM')
  await ended
}

function atPort(serverUrl: string, port: number): string {
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = `${port}`
  return url.href
}
