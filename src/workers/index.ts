import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown, requireList } from '../core/options.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import { positive } from '../onlyonce/requests.ts'
import type { Worker } from '../onlyonce/worker.ts'
import type { Operation } from '../operation/operation.ts'
import { type RelayOptions, relay } from '../outbox/index.ts'
import { type CompleterOptions, completer } from './completer.ts'
import { Loop } from './loop.ts'
import { type ReaperOptions, reaper } from './reaper.ts'
import { reconciler } from './reconciler.ts'
import { type RecovererOptions, recoverer } from './recoverer.ts'
import type { TakerOptions } from './take.ts'

export type { Ran, Worker } from '../onlyonce/worker.ts'
export { type CompleterOptions, completer } from './completer.ts'
export { addEvidence, type Evidence, type EvidenceTold } from './evidence.ts'
export { type ReaperOptions, reaper } from './reaper.ts'
export { reconciler } from './reconciler.ts'
export { type RecovererOptions, recoverer } from './recoverer.ts'
export type { TakerOptions } from './take.ts'

export interface WorkersOptions {
  /**
   * Operations that these workers can go on with, beside those that `once` knows already.
   *
   * @default none
   */
  readonly operations?: readonly Operation<never, unknown>[]
  /** @default {} */
  readonly completer?: CompleterOptions | false
  /** @default {} */
  readonly reconciler?: TakerOptions | false
  /** @default { mode: 'delete' } */
  readonly reaper?: ReaperOptions | false
  /**
   * Looks after handlers whose owner gave no outcome.
   *
   * @default {}
   */
  readonly recoverer?: RecovererOptions | false
  /**
   * Where events go and who runs jobs. Without it no relay is run.
   *
   * @default none
   */
  readonly relay?: RelayOptions
  /**
   * Workers beside the default ones, such as `webhooks(once).deliverer()`. One that has the name of a default one, such as `reaper(once, …)`, takes its place.
   *
   * @default none
   */
  readonly workers?: readonly Worker[]
  /**
   * False: none of the default workers run, only those of `workers` and `relay`.
   *
   * @default true
   */
  readonly defaults?: boolean
  /**
   * How often a worker looks while nothing waits for it, where it does not say so itself.
   *
   * @default 1_000
   */
  readonly everyMs?: number
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

const NAMES: OptionNames<WorkersOptions> = {
  operations: true,
  completer: true,
  reconciler: true,
  reaper: true,
  recoverer: true,
  relay: true,
  workers: true,
  defaults: true,
  everyMs: true,
}

/**
 * Runs workers until they are stopped, or `once` is closed. Any number of processes may run the same ones. They keep the
 * process alive, so that one may do nothing else.
 *
 * @example
 * const workers = startWorkers(once, {
 *   operations: [createPayment],
 *   relay: { destinations: { billing: httpPublisher({ url }) } },
 * })
 */
export function startWorkers<Tx>(once: Onlyonce<Tx>, options: WorkersOptions = {}): RunningWorkers {
  const engine = engineOf(once)
  const everyMs = checkOptions(options)
  requireList('operations', options.operations ?? [])
  for (const operation of options.operations ?? []) {
    engine.durable.catalog.add(operation as Operation<unknown, unknown>)
  }
  const workers = workersOf(once, options)
  const loops: Loop[] = []
  const stopAll = async () => {
    await Promise.all(loops.map((loop) => loop.stop(LIMITS.workerStopMaxMs)))
    await Promise.all(workers.map((worker) => worker.drain?.()))
  }
  // What these workers do, or were told to leave, the background loop of this process does not do beside them.
  const names = options.defaults === false ? workers.map(({ name }) => name) : 'all'
  const goOn = engine.upkeep.yieldTo(names)
  const stayOpen = engine.stopWithMe(stopAll)
  try {
    for (const worker of workers) loops.push(new Loop(worker, everyMs, engine.observers))
  } catch (error) {
    goOn()
    stayOpen()
    // What could not be started is what the caller is told.
    stopAll().catch(() => {})
    throw error
  }
  return {
    stop: async () => {
      await stopAll()
      goOn()
      stayOpen()
    },
  }
}

/** All that a store has work for, and those that were given. */
function workersOf<Tx>(once: Onlyonce<Tx>, options: WorkersOptions): Worker[] {
  const given = options.workers ?? []
  const usual = options.defaults === false ? [] : defaultWorkers(once, options)
  const others = usual.filter(({ name }) => !given.some((worker) => worker.name === name))
  const relays = options.relay === undefined ? [] : [relay(once, options.relay)]
  return [...others, ...relays, ...given]
}

function defaultWorkers<Tx>(once: Onlyonce<Tx>, options: WorkersOptions): Worker[] {
  const durable = engineOf(once).store.operations !== undefined
  const usual = [
    options.completer !== false && durable && completer(once, options.completer),
    options.reconciler !== false && durable && reconciler(once, options.reconciler),
    options.recoverer !== false && recoverer(once, options.recoverer),
    options.reaper !== false && reaper(once, options.reaper ?? { mode: 'delete' }),
  ]
  return usual.filter((worker) => worker !== false)
}

function checkOptions(options: WorkersOptions): number {
  refuseUnknown('startWorkers()', options, NAMES)
  const { workers = [], defaults = true, everyMs = LIMITS.workerEveryMs } = options
  requireList('workers', workers)
  if (typeof defaults !== 'boolean') refuse('defaults is true or false.')
  for (const worker of workers) {
    if (typeof worker?.runOnce !== 'function') refuse('A worker has a name and runOnce().')
    if (worker.everyMs !== undefined) positive('everyMs', worker.everyMs)
    const twice = DEFAULTS.find((name) => name === worker.name && options[name])
    if (twice !== undefined) refuse(`${twice} has options, and stands among workers too. Pass one of them.`)
  }
  if (defaults) return positive('everyMs', everyMs)
  const stray = DEFAULTS.find((name) => options[name])
  if (stray !== undefined) refuse(`${stray} has options, and defaults: false leaves it out.`)
  if (workers.length === 0 && options.relay === undefined) refuse('defaults: false leaves no worker to run.')
  return positive('everyMs', everyMs)
}

const DEFAULTS = ['completer', 'reconciler', 'recoverer', 'reaper'] as const

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
