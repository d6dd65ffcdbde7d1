import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { type Observers, StuckAlarm, UnattendedWatch } from '../observe/index.ts'
import { Recovers } from '../protect/recover.ts'
import { Recovery } from '../protect/recovery.ts'
import type { CrashPoint, Store } from '../store/contract.ts'
import { Background, type Duty } from './background.ts'
import type { OnlyonceOptions } from './door.ts'
import { positive } from './requests.ts'

/** What a process does beside its requests: counts what is stuck, looks after what is in doubt, prunes what has expired. */
export class Upkeep<Tx> {
  readonly recovery: Recovery<Tx>
  /** From which age on an unfinished record counts as stuck. */
  readonly stuckAfterMs: number
  readonly #alarm: StuckAlarm
  readonly #background: Background

  constructor(
    options: OnlyonceOptions<Tx>,
    store: Store<Tx>,
    observers: Observers,
    crashPoint: CrashPoint,
    retentionMs: number,
    known: { readonly all: readonly { readonly name: string }[] },
  ) {
    const { stuckAfterMs = LIMITS.stuckAfterMs, graceMs = LIMITS.graceMs, background = true } = options
    const { stuckCheckEveryMs = LIMITS.stuckCheckEveryMs } = options
    if (typeof background !== 'boolean') {
      throw new OnlyonceError('option_invalid', { detail: 'background is true or false.' })
    }
    this.stuckAfterMs = positive('stuckAfterMs', stuckAfterMs)
    this.#alarm = new StuckAlarm((ageMs) => store.stuck(ageMs), observers, {
      olderThanMs: stuckAfterMs,
      everyMs: positive('stuckCheckEveryMs', stuckCheckEveryMs),
    })
    const scheduleMs = options.reconcileAfterMs ?? LIMITS.reconcileAfterMs
    this.recovery = new Recovery({
      store,
      recovers: new Recovers(options.recover),
      observers,
      crashPoint,
      scheduleMs,
      graceMs: positive('graceMs', graceMs),
      retentionMs,
    })
    const duties = [...this.#duties(store, observers), ...watchFor(store, observers, known)]
    this.#background = new Background(background ? duties : [], observers)
  }

  start(): void {
    this.#alarm.start()
    this.#background.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#alarm.stop(), this.#background.stop()])
  }

  /** Workers of this process have these duties, or all of them. Gives back how to take that back. */
  yieldTo(names: readonly string[] | 'all'): () => void {
    return this.#background.yieldTo(names)
  }

  #duties(store: Store<Tx>, observers: Observers): Duty[] {
    const keptMinMs = Math.max(LIMITS.finishedKeptMinMs, store.doubtMaxMs)
    const batch = { batchMax: LIMITS.backgroundBatchMax, atOnce: LIMITS.backgroundAtOnce }
    return [
      { name: 'recoverer', everyMs: LIMITS.backgroundEveryMs, run: () => this.recovery.runOnce(batch) },
      {
        name: 'reaper',
        everyMs: LIMITS.reapEveryMs,
        run: async () => {
          const request = { mode: 'delete', batchMax: LIMITS.backgroundPruneMax, keptMinMs } as const
          const { count, more } = await store.reap(request)
          if (count > 0) observers.emit({ signal: 'ttl_pruned', count })
          return { more }
        },
      },
    ]
  }
}

/**
 * Looks for operations that no worker takes. Beside workers of this process too: they may lack the code, or have been told to leave the
 * operations to others. Of operations that this process has no code of, processes that have it tell.
 */
function watchFor<Tx>(
  { operations }: Store<Tx>,
  observers: Observers,
  known: { readonly all: readonly { readonly name: string }[] },
): Duty[] {
  if (operations === undefined) return []
  const watch = new UnattendedWatch(
    (except) => operations.longestWaiting(LIMITS.unattendedAfterMs, except),
    (id) => {
      if (known.all.some(({ name }) => name === id.operation)) observers.unattended(id)
    },
    { unmovedMs: LIMITS.unattendedAfterMs, againMs: LIMITS.unattendedAgainMs },
  )
  const run = async () => {
    if (known.all.length > 0) await watch.look()
    return { more: false }
  }
  return [{ name: 'watch', everyMs: LIMITS.unattendedCheckEveryMs, always: true, run }]
}
