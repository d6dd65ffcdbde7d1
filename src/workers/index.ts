import type { Onlyonce } from '../door.ts'
import { OnlyonceError } from '../errors.ts'
import { LIMITS } from '../limits.ts'
import { engineOf } from '../onlyonce.ts'
import { positive } from '../requests.ts'
import type { Worker } from '../worker.ts'
import { Loop } from './loop.ts'

export { type ReaperOptions, reaper } from './reaper.ts'

export interface WorkersOptions {
  /** What is to be run in the background of this process, each by itself. */
  readonly workers: readonly Worker[]
  /** How often a worker looks while nothing waits for it, where it does not say so itself. */
  readonly every_ms?: number
}

/** Workers that run. */
export interface RunningWorkers {
  /**
   * Starts no further batch and waits for those that run, up to a limit. `once.close()` does it too.
   *
   * @example
   * process.once('SIGTERM', async () => {
   *   await workers.stop()
   *   await once.close()
   * })
   */
  stop(): Promise<void>
}

const KNOWN: readonly string[] = ['workers', 'every_ms'] satisfies (keyof WorkersOptions)[]

/**
 * Runs workers until they are stopped, or `once` is closed. Any number of processes may run the same ones. They keep the
 * process alive, so that one may do nothing else.
 *
 * @example
 * const workers = startWorkers(once, { workers: [reaper(once, { mode: 'delete' })] })
 */
export function startWorkers<Tx>(once: Onlyonce<Tx>, options: WorkersOptions): RunningWorkers {
  const engine = engineOf(once)
  const { workers, every_ms } = checkOptions(options)
  const loops: Loop[] = []
  const stopAll = async () => {
    await Promise.all(loops.map((loop) => loop.stop(LIMITS.worker_stop_max_ms)))
  }
  const stayOpen = engine.stopWithMe(stopAll)
  try {
    for (const worker of workers) loops.push(new Loop(worker, every_ms, engine.observers))
  } catch (error) {
    stayOpen()
    void stopAll()
    throw error
  }
  return {
    stop: async () => {
      await stopAll()
      stayOpen()
    },
  }
}

function checkOptions(options: WorkersOptions): Required<WorkersOptions> {
  const stray = Object.keys(options ?? {}).find((name) => !KNOWN.includes(name))
  if (stray !== undefined) refuse(`startWorkers() has no option ${stray}.`)
  const { workers, every_ms = LIMITS.worker_every_ms } = options ?? {}
  if (!Array.isArray(workers) || workers.length === 0) refuse('Pass workers, for example [reaper(once, …)].')
  for (const worker of workers) {
    if (typeof worker?.runOnce !== 'function') refuse('A worker has a name and runOnce().')
    if (worker.every_ms !== undefined) positive('every_ms', worker.every_ms)
  }
  return { workers, every_ms: positive('every_ms', every_ms) }
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
