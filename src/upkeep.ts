import { Background, type Duty } from './background.ts'
import type { OnlyonceOptions } from './door.ts'
import { OnlyonceError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { type Observers, StuckAlarm, UnattendedWatch } from './observe/index.ts'
import { Recovers } from './protect/recover.ts'
import { Recovery } from './protect/recovery.ts'
import { positive } from './requests.ts'
import type { CrashPoint, Store } from './store/contract.ts'

/** What a process does beside its requests: counts what is stuck, looks after what is in doubt, prunes what has expired. */
export class Upkeep<Tx> {
  readonly recovery: Recovery<Tx>
  /** From which age on an unfinished record counts as stuck. */
  readonly stuck_after_ms: number
  readonly #alarm: StuckAlarm
  readonly #background: Background

  constructor(
    options: OnlyonceOptions<Tx>,
    store: Store<Tx>,
    observers: Observers,
    crashPoint: CrashPoint,
    retention_ms: number,
    known: { readonly all: readonly { readonly name: string }[] },
  ) {
    const { stuck_after_ms = LIMITS.stuck_after_ms, grace_ms = LIMITS.grace_ms, background = true } = options
    const { stuck_check_every_ms = LIMITS.stuck_check_every_ms } = options
    if (typeof background !== 'boolean') {
      throw new OnlyonceError('option_invalid', { detail: 'background is true or false.' })
    }
    this.stuck_after_ms = positive('stuck_after_ms', stuck_after_ms)
    this.#alarm = new StuckAlarm((age_ms) => store.stuck(age_ms), observers, {
      older_than_ms: stuck_after_ms,
      every_ms: positive('stuck_check_every_ms', stuck_check_every_ms),
    })
    const schedule_ms = options.reconcile_after_ms ?? LIMITS.reconcile_after_ms
    this.recovery = new Recovery({
      store,
      recovers: new Recovers(options.recover),
      observers,
      crashPoint,
      schedule_ms,
      grace_ms: positive('grace_ms', grace_ms),
      retention_ms,
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
    const kept_min_ms = Math.max(LIMITS.finished_kept_min_ms, store.doubt_max_ms)
    const batch = { batch_max: LIMITS.background_batch_max, at_once: LIMITS.background_at_once }
    return [
      { name: 'recoverer', every_ms: LIMITS.background_every_ms, run: () => this.recovery.runOnce(batch) },
      {
        name: 'reaper',
        every_ms: LIMITS.reap_every_ms,
        run: async () => {
          const request = { mode: 'delete', batch_max: LIMITS.background_prune_max, kept_min_ms } as const
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
    (except) => operations.longestWaiting(LIMITS.unattended_after_ms, except),
    (id) => {
      if (known.all.some(({ name }) => name === id.operation)) observers.unattended(id)
    },
    { unmoved_ms: LIMITS.unattended_after_ms, again_ms: LIMITS.unattended_again_ms },
  )
  const run = async () => {
    if (known.all.length > 0) await watch.look()
    return { more: false }
  }
  return [{ name: 'watch', every_ms: LIMITS.unattended_check_every_ms, always: true, run }]
}
