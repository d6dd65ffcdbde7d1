import { link, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { waitFor } from './wait.ts'

/** What the server writes into postmaster.pid, its own lock on the data folder. */
export interface LockFile {
  readonly text: string
  readonly pid: number
  readonly port: number
  readonly ready: boolean
}

/** The server creates the file and fills it with one write; one that stays empty was left by a crash. */
const FILL_MAX_MS = 1_000

/**
 * Reads the lock file of a data folder; undefined when there is none.
 *
 * @example
 * const lock = await readLockFile('/var/lib/onlyonce/data')
 */
export async function readLockFile(data: string): Promise<LockFile | undefined> {
  const file = join(data, 'postmaster.pid')
  const read = () => readFile(file, 'utf8').then((text) => text || undefined)
  try {
    const text = (await waitFor(read, FILL_MAX_MS)) ?? ''
    // Line by line: process id, folder, start time, port, socket folder, address, shared memory, status.
    const lines = text.split('\n')
    const [pid = 0, port = 0] = [lines[0], lines[3]].map((line) => Number.parseInt(line ?? '', 10) || 0)
    return { text, pid, port, ready: lines[7]?.trim() === 'ready' }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Removes a lock file whose process is gone or is no server. PostgreSQL does so itself, except when the process id
 * was reused by another process of the same user; then it would refuse to start for ever.
 *
 * A new server may write its own lock file at this very moment, so the file is first taken aside and looked
 * at, and put back if it is not the stale one. Even without it two servers never share data: PostgreSQL also looks
 * whether anybody is attached to the old shared memory.
 *
 * @example
 * if (lock !== undefined && !isPostmaster(lock.pid, data)) await removeStaleLockFile(data, lock)
 */
export async function removeStaleLockFile(data: string, stale: LockFile): Promise<void> {
  const file = join(data, 'postmaster.pid')
  const aside = join(data, `postmaster.pid.stale.${process.pid}`)
  try {
    await rename(file, aside)
    if ((await readFile(aside, 'utf8')) !== stale.text) await link(aside, file)
    await rm(aside)
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  }
}
