import { type ChildProcess, spawn } from 'node:child_process'
import { EMBEDDED_LIMITS } from './limits.ts'

/** A process that ends a server when the process which started it is gone. */
export interface Watchdog {
  /** The server is ended by another process, or belongs to one. */
  dismiss(): void
}

/**
 * Watches over a server in a process of its own, which holds a pipe to this one. The kernel closes the pipe however this process ends, also by
 * SIGKILL. Then the server is given a while to be adopted by the next start in its folder, and is ended if it was not.
 *
 * @example
 * const watchdog = watchOver({ serverPid: 4711, folder: '/var/lib/onlyonce', data: '/var/lib/onlyonce/data' })
 */
export function watchOver({
  serverPid,
  folder,
  data,
}: {
  readonly serverPid: number
  readonly folder: string
  readonly data: string
}): Watchdog {
  const { orphanGraceMs, stopMaxMs } = EMBEDDED_LIMITS
  // By name: what else a caller passes, such as the password of the server, must not stand on a command line.
  const settings = { serverPid, folder, data, parentPid: process.pid, orphanGraceMs, stopMaxMs }
  const child: ChildProcess = spawn(process.execPath, ['--eval', PROGRAM, JSON.stringify(settings)], {
    // A group of its own: Ctrl-C at a terminal is for the service, which ends its server itself.
    detached: true,
    env: {},
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // Without it the server is as it was before there were watchdogs: the next start adopts it.
  child.on('error', () => {})
  child.stdin!.on('error', () => {})
  child.unref()
  ;(child.stdin as { unref?: () => void }).unref?.()
  return {
    dismiss() {
      child.stdin!.end('dismissed')
    },
  }
}

/**
 * Plain JavaScript without imports of ours, because a process that was started by a loader may watch, or none. It looks at PostgreSQL's own lock
 * file, and not at the process id alone, which may be another process's by now.
 */
const PROGRAM = `
const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { serverPid, parentPid, folder, data, orphanGraceMs, stopMaxMs } = JSON.parse(process.argv[1])
const read = (file) => { try { return readFileSync(file, 'utf8') } catch { return '' } }
const lives = (pid) => { try { process.kill(pid, 0); return true } catch (error) { return error.code === 'EPERM' } }
const isServer = () => lives(serverPid) && Number(read(join(data, 'postmaster.pid')).split('\\n')[0]) === serverPid
const isAdopted = () => {
  const [server, owner] = read(join(folder, 'owner')).split(' ').map(Number)
  return server === serverPid && owner !== parentPid && lives(owner)
}
const signal = (name) => { try { process.kill(serverPid, name) } catch {} }
let told = ''
process.stdin.setEncoding('utf8').on('data', (text) => { told += text }).on('error', () => {}).on('close', () => {
  if (told === 'dismissed') process.exit()
  setTimeout(() => {
    if (isAdopted() || !isServer()) process.exit()
    signal('SIGINT')
    setTimeout(() => { if (isServer()) signal('SIGQUIT'); process.exit() }, stopMaxMs)
    setInterval(() => { if (!isServer()) process.exit() }, 100)
  }, orphanGraceMs)
})
for (const name of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(name, () => {})
`
