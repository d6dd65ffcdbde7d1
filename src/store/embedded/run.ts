import { setTimeout as sleep } from 'node:timers/promises'
import { OnlyonceError } from '../../core/errors.ts'
import { ask, type Introduction } from './ask.ts'
import type { Cluster } from './cluster.ts'
import { canonicalSettings, type Launched, launch, type Settings } from './launch.ts'
import { EMBEDDED_LIMITS } from './limits.ts'
import { type LockFile, readLockFile, removeStaleLockFile } from './lock-file.ts'
import { ownerOf, takeOver } from './owner.ts'
import { pickPort } from './port.ts'
import { isPostmaster } from './process.ts'
import { stopProcess } from './stop.ts'
import { waitFor } from './wait.ts'

/** A server that answers. */
export interface Running {
  readonly pid: number
  readonly port: number
  readonly startedByPid: number | undefined
}

/** What the caller wants of the server; a running one that differs is not adopted. */
export interface Wanted {
  readonly port: number | undefined
  readonly settings: Settings
}

/**
 * Starts a server in the cluster's folder, or adopts the one that runs there already.
 *
 * PostgreSQL's own lock file decides between two that start at once: the second one's server ends at once, and
 * the second one finds the first one's.
 *
 * @example
 * const { pid, port } = await runServer(cluster, { port: undefined, settings: {} })
 */
export async function runServer(cluster: Cluster, wanted: Wanted): Promise<Running> {
  const endMs = performance.now() + EMBEDDED_LIMITS.startMaxMs
  let failure = 'It did not answer in time.'
  while (performance.now() < endMs) {
    const lock = await readLockFile(cluster.data)
    if (lock !== undefined && isPostmaster(lock.pid, cluster.data)) {
      const adopted = await adopt(cluster, lock, wanted, endMs)
      if (adopted !== undefined) return adopted
      continue
    }
    if (lock !== undefined) await removeStaleLockFile(cluster.data, lock)
    const port = wanted.port ?? (await pickPort())
    const launched = await launch(cluster, port, wanted.settings)
    const outcome = await awaitLaunched(cluster, launched, port, endMs).catch(async (error: unknown) => {
      // A server that refuses us is of no use, and no other process knows of it.
      await stopProcess(launched.pid ?? 0, cluster.data)
      throw error
    })
    if (typeof outcome !== 'string') return outcome
    failure = outcome
    if (!isPassing(failure, wanted)) break
    await sleep(EMBEDDED_LIMITS.pollMs)
  }
  const detail = `The embedded server in ${cluster.folder} does not start. ${failure}`
  throw new OnlyonceError('store_unavailable', { detail })
}

/**
 * A server that is still recovering when the time is over is left alone: it gets on, and the next start adopts
 * it. Stopped, it would begin anew each time and might never be ready.
 */
async function awaitLaunched(
  cluster: Cluster,
  launched: Launched,
  port: number,
  endMs: number,
): Promise<Running | string> {
  const outcome = await waitFor(async () => {
    const failure = await launched.ended()
    if (failure !== undefined) return failure
    const lock = await readLockFile(cluster.data)
    if (lock === undefined || lock.pid !== launched.pid || !lock.ready) return undefined
    const introduction = await ask(cluster, port)
    return introduction && { pid: lock.pid, port, startedByPid: introduction.startedByPid }
  }, endMs - performance.now())
  return outcome ?? `It has not answered yet, process ${launched.pid}; see ${cluster.logFile}.`
}

/** Failures that end by themselves: another one was first, its children still end, or the port is taken. */
function isPassing(failure: string, wanted: Wanted): boolean {
  if (/lock file ".*" (already exists|is empty)|pre-existing shared memory block/.test(failure)) return true
  return wanted.port === undefined && /could not bind|could not create any TCP\/IP sockets/.test(failure)
}

/** Undefined when the server ended meanwhile, or was ended because it was not what is wanted. */
async function adopt(
  cluster: Cluster,
  lock: LockFile,
  wanted: Wanted,
  endMs: number,
): Promise<Running | undefined> {
  const found = await awaitIntroduction(cluster, lock, endMs)
  if (found === 'gone') return undefined
  const { port, introduction } = found
  if (introduction.settings === undefined) {
    throw refuse(cluster, lock, 'was not started by this library. Stop it first.')
  }
  const { startedByPid } = introduction
  const ownerPid = ownerOf(cluster.folder, lock.pid, startedByPid)
  const fits = introduction.settings === canonicalSettings(wanted.settings) && (wanted.port ?? port) === port
  if (fits) {
    if (ownerPid === undefined) await takeOver(cluster.folder, lock.pid)
    return { pid: lock.pid, port, startedByPid }
  }
  if (ownerPid !== undefined) {
    throw refuse(cluster, lock, `has another port or other settings and belongs to process ${ownerPid}.`)
  }
  await stopProcess(lock.pid, cluster.data)
  return undefined
}

async function awaitIntroduction(
  cluster: Cluster,
  lock: LockFile,
  endMs: number,
): Promise<{ port: number; introduction: Introduction } | 'gone'> {
  const found = await waitFor(async () => {
    if (!isPostmaster(lock.pid, cluster.data)) return 'gone' as const
    const current = await readLockFile(cluster.data)
    if (current?.pid !== lock.pid || !current.ready) return undefined
    const introduction = await ask(cluster, current.port)
    return introduction && { port: current.port, introduction }
  }, endMs - performance.now())
  if (found === undefined) throw refuse(cluster, lock, 'does not answer.')
  return found
}

function refuse(cluster: Cluster, lock: LockFile, reason: string): OnlyonceError {
  const detail = `The server that runs in ${cluster.folder}, process ${lock.pid}, ${reason}`
  return new OnlyonceError('store_unavailable', { detail })
}
