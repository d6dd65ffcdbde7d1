import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it } from 'vitest'
import { cleanUpLater } from '../../../test/setup/clean-up.ts'
import { waitUntil } from '../../../test/setup/wait.ts'
import { startEmbeddedPostgres } from './index.ts'
import { processExists } from './process.ts'

const DOOR = new URL('./index.ts', import.meta.url).href

/** A process that starts a server in the folder, tells its process id, and waits to be killed. */
async function startIn(folder: string): Promise<{ parent: ChildProcess; pid: number }> {
  const text = `import { startEmbeddedPostgres } from '${DOOR}'
    const server = await startEmbeddedPostgres({ folder: ${JSON.stringify(folder)}, settings: { fsync: 'off' } })
    console.log(server.pid)
    setInterval(() => {}, 1000)`
  const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', text], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanUpLater(async () => void parent.kill('SIGKILL'))
  const lines = createInterface({ input: parent.stdout! })
  const line = await new Promise<string>((resolve, reject) => {
    lines.once('line', resolve)
    parent.once('exit', () => reject(new Error('The server did not start.')))
  })
  return { parent, pid: Number(line) }
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'onlyonce-watchdog-'))
  // The server's user has to enter it, where root runs the tests.
  await chmod(folder, 0o755)
  cleanUpLater(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'database')
}

/** Processes that watch over the server of this folder. */
async function watchdogsOf(folder: string): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  const own = lines.filter((line) => line.includes(folder) && line.includes('"orphanGraceMs"'))
  // Every user of the machine can read a command line.
  const password = (await readFile(join(folder, 'password'), 'utf8')).trim()
  for (const line of own) expect(line.includes(password)).toBe(false)
  return own.length
}

it('a server whose process is killed is adopted by the next start, and ends soon where there is none', async () => {
  const folder = await newFolder()
  const first = await startIn(folder)
  expect(await watchdogsOf(folder)).toBe(1)
  first.parent.kill('SIGKILL')
  const second = await startIn(folder)
  expect(second.pid).toBe(first.pid)
  await waitUntil('the first watchdog has looked', async () => (await watchdogsOf(folder)) === 1, 60_000)
  expect(processExists(second.pid)).toBe(true)
  second.parent.kill('SIGKILL')
  await waitUntil('the server is gone', () => !processExists(second.pid), 60_000)
  await waitUntil('the second watchdog is gone', async () => (await watchdogsOf(folder)) === 0)
}, 180_000)

it('a server that is stopped takes its watchdog along', async () => {
  const folder = await newFolder()
  const server = await startEmbeddedPostgres({ folder, settings: { fsync: 'off' } })
  expect(await watchdogsOf(folder)).toBe(1)
  await server.restart()
  await waitUntil('there is one for the server that runs now', async () => (await watchdogsOf(folder)) === 1)
  await server.stop()
  await waitUntil('it is gone', async () => (await watchdogsOf(folder)) === 0)
}, 180_000)
