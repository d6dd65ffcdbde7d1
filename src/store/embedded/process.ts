import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, realpathSync } from 'node:fs'
import { basename, isAbsolute } from 'node:path'

/**
 * Whether a process runs. A zombie does not: where no process reaps orphans, as in many containers, a dead server
 * stays in the process table for ever.
 *
 * @example
 * if (!processExists(pid)) await startAgain()
 */
export function processExists(pid: number): boolean {
  // Zero and below name process groups, ours first of all.
  if (!(pid > 0)) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  if (process.platform !== 'linux') return true
  const state = readStat(pid)?.state
  return state !== undefined && state !== 'Z' && state !== 'X'
}

/**
 * Whether `pid` is a PostgreSQL server that works in the folder `data`. A number alone proves nothing: after a
 * container restarts, the process id in an old lock file often names another process, even one of our own threads.
 *
 * The command line is read and not the working directory, because root in a container without CAP_SYS_PTRACE
 * may not see the latter. A server that names its folder in no absolute way is given the benefit of the doubt.
 *
 * @example
 * if (isPostmaster(lock.pid, '/var/lib/onlyonce/data')) await adopt(lock)
 */
export function isPostmaster(pid: number, data: string): boolean {
  if (!processExists(pid)) return false
  const words = readCommand(pid, data)
  const name = basename(words[0] ?? '')
  if (name !== 'postgres' && name !== 'postmaster') return false
  const at = words.indexOf('-D')
  const folder = at === -1 ? undefined : words[at + 1]
  if (folder === undefined || !isAbsolute(folder)) return true
  return folder === data || resolveLinks(folder) === data
}

/**
 * The direct children of a process. PostgreSQL's lead sessions of their own, so no process group holds them.
 *
 * @example
 * for (const child of listChildren(postmaster)) process.kill(child, 'SIGKILL')
 */
export function listChildren(pid: number): number[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((other) => readStat(other)?.parent === pid)
  }
  const rows = execFileSync('ps', ['-axo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  return rows
    .map((row) => row.trim().split(/\s+/).map(Number))
    .flatMap(([id, up]) => (up === pid && id ? [id] : []))
}

/**
 * Sends a signal, and does not mind when the process is gone already.
 *
 * @example
 * sendSignal(pid, 'SIGINT')
 */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function readStat(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name stands in parentheses and may hold anything, parentheses included.
    const [state = '', parent = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

function readCommand(pid: number, data: string): string[] {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    // ps does not say where an argument ends, and folders may hold spaces: compare with what we look for.
    const text = execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    const [program = '', rest] = text.split(' -D ', 2)
    if (rest === undefined) return [program]
    return [program, '-D', rest === data || rest.startsWith(`${data} `) ? data : rest]
  } catch {
    return []
  }
}

function resolveLinks(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
