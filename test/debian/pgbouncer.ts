import { spawn } from 'node:child_process'
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { chooseAccount } from '../../src/store/embedded/account.ts'

export interface PgBouncer {
  /** The same database, through the pooler. */
  readonly url: string
  stop(): Promise<void>
}

/** PgBouncer in transaction mode with so many connections to the server, in front of the server of `url`. */
export async function startPgBouncer(url: string, pool_size: number): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-pgbouncer-'))
  const { hostname, port, username, password, pathname } = new URL(url)
  const listen_port = await freePort()
  const config = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'users.txt')
  await writeFile(users, `"${username}" "${decodeURIComponent(password)}"\n`)
  await writeFile(
    config,
    `[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listen_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${pool_size}
max_client_conn = 200
`,
  )
  const account = await chooseAccount()
  if (account !== undefined)
    for (const path of [folder, config, users]) await chown(path, account.uid, account.gid)
  const child = spawn('/usr/sbin/pgbouncer', ['-q', config], { ...account, stdio: 'ignore' })
  const through = new URL(url)
  through.port = `${listen_port}`
  through.pathname = pathname
  await untilItAnswers(through.href)
  return {
    url: through.href,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      await rm(folder, { recursive: true })
    },
  }
}

async function untilItAnswers(url: string): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      if (tries === 100) throw error
      await sleep(50)
    }
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
