import { LIMITS } from '../core/limits.ts'
import type { Observers } from '../observe/index.ts'
import { type Decision, type Failure, type LookEnd, OWNER_VANISHED, type RecordId } from '../record/index.ts'
import type { CrashPoint, Store } from '../store/contract.ts'
import type { Unattended } from '../store/recovery.ts'
import { ask, type Recovers } from './recover.ts'

/** What those need who look after records whose owner gave no outcome. */
export interface RecoveryHouse<Tx> {
  readonly store: Store<Tx>
  readonly recovers: Recovers
  readonly observers: Observers
  readonly crashPoint: CrashPoint
  /** When it is asked again, each counted from the look before; after the last the record is parked. */
  readonly scheduleMs: readonly number[]
  readonly graceMs: number
  /** How long a record is kept whose claim did not say so. */
  readonly retentionMs: number
}

/** How many records are looked after in one turn, and how many at once. */
export interface RecoveryBatch {
  readonly batchMax: number
  readonly atOnce: number
}

/**
 * Looks after handlers, and transactions in doubt, whose owner gave no outcome. Where `recover` is known it is asked, as often
 * as the schedule says. Where there is none, or it cannot tell to the end, the record is parked.
 *
 * A look is taken in the record before anybody is asked, and its answer is written under its number. So two processes never
 * decide differently, and a process that dies in between has only used up a look. The fence stays the owner's, whose own
 * late word still counts until then.
 */
export class Recovery<Tx> {
  readonly #house: RecoveryHouse<Tx>

  constructor(house: RecoveryHouse<Tx>) {
    this.#house = house
  }

  get recovers(): Recovers {
    return this.#house.recovers
  }

  get graceMs(): number {
    return this.#house.graceMs
  }

  /** For a caller who met a record in doubt: looks, if that is due. True where the record is worth another look then. */
  async attend(id: RecordId, decision: Decision): Promise<boolean> {
    if ((decision.kind !== 'unknown' && decision.kind !== 'vanished') || !decision.due) return false
    const { fence, attemptId, kind, looks, failure } = decision.record
    try {
      return await this.#look({ id, fence, attemptId, kind, looks, failure, state: 'unknown' }, false)
    } catch {
      // The record is in doubt, and that is what the caller hears; the store's error was told where it came up.
      return false
    }
  }

  /** One bounded batch, for those who do it in the background. */
  async runOnce({
    batchMax,
    atOnce,
  }: RecoveryBatch): Promise<{ readonly done: number; readonly more: boolean }> {
    const { store, recovers, graceMs, crashPoint, observers } = this.#house
    crashPoint('recover.find.before')
    const found = await store.recovery.unattended({
      graceMs,
      operations: recovers.operations,
      orphanedMs: LIMITS.recoverOrphanedMs,
      limit: batchMax,
    })
    crashPoint('recover.find.after')
    const left = [...found]
    let done = 0
    const lane = async () => {
      for (let seen = left.shift(); seen !== undefined; seen = left.shift()) {
        try {
          if (await this.#attendTo(seen)) done += 1
        } catch {
          // Told by the store. What one record does harms no other.
          observers.emit({ signal: 'reconcile_failed', id: seen.id, failure: seen.failure ?? OWNER_VANISHED })
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(atOnce, left.length) }, lane))
    return { done, more: found.length >= batchMax && done > 0 }
  }

  async #attendTo(seen: Unattended): Promise<boolean> {
    if (seen.state === 'unknown') return await this.#look(seen, true)
    const { store, observers, crashPoint, graceMs, retentionMs } = this.#house
    crashPoint('recover.vanish.before')
    const state = await store.recovery.vanish(seen, graceMs, retentionMs)
    crashPoint('recover.vanish.after')
    if (state === null) return false
    const { id } = seen
    observers.emit({ signal: 'zombie_key', protection: 'handler', id })
    if (state === 'retryable') return true
    observers.emit({ signal: 'reconcile_scheduled', id, failure: OWNER_VANISHED })
    await this.#look({ ...seen, state, looks: 0, failure: OWNER_VANISHED }, false)
    return true
  }

  /** `orphaned`: no process has had the `recover` that the record counts on for long. */
  async #look(seen: Unattended, orphaned: boolean): Promise<boolean> {
    const recover = this.recovers.get(seen.id.operation)
    if (recover !== undefined) return await this.#ask(seen, recover)
    const elsewhere = seen.kind === 'handler_recoverable'
    if (elsewhere && !orphaned) return false
    return await this.#end(seen, { end: 'parked', failure: elsewhere ? RECOVER_MISSING : whyParked(seen) })
  }

  async #ask(seen: Unattended, recover: NonNullable<ReturnType<Recovers['get']>>): Promise<boolean> {
    const { store, crashPoint, scheduleMs } = this.#house
    crashPoint('recover.take.before')
    const look = await store.recovery.takeLook(seen, LIMITS.recoverHoldMs)
    crashPoint('recover.take.after')
    // Another looks: a caller that asks the record again hears until when.
    if (look === null) return true
    crashPoint('recover.ask.before')
    const asked = await ask(recover, seen.id)
    crashPoint('recover.ask.after')
    if (asked.end === 'found') return await this.#end(look, asked)
    if (asked.end === 'void') return await this.#end(look, { end: 'void', failure: VOIDED })
    const inMs = scheduleMs[look.looks - 1]
    if (inMs === undefined)
      return await this.#end(look, { end: 'parked', failure: exhausted(look.looks, asked.failure) })
    return await this.#end(look, { end: 'again', inMs }, asked.failure)
  }

  async #end(look: Unattended, end: LookEnd, failure: Failure | null = null): Promise<boolean> {
    const { store, observers, crashPoint, retentionMs } = this.#house
    const { id } = look
    crashPoint('recover.write.before')
    const done = await store.recovery.endLook(look, end, retentionMs)
    crashPoint('recover.write.after')
    if (!done) return true
    switch (end.end) {
      case 'found':
        observers.emit({ signal: 'reconcile_resolved', id, state: 'completed' })
        break
      case 'void':
        observers.emit({ signal: 'reconcile_resolved', id, state: 'retryable' })
        break
      case 'again':
        observers.emit({ signal: 'reconcile_failed', id, failure: failure ?? OWNER_VANISHED })
        break
      case 'parked':
        observers.parked(id, end.failure)
        break
      default:
        end satisfies never
    }
    return true
  }
}

/** Why it is unknown stays what callers are told. */
function whyParked({ failure }: Unattended): Failure {
  return failure ?? OWNER_VANISHED
}

const VOIDED: Failure = {
  code: 'recovered_void',
  message: 'recover states that the effect has not happened and can no longer happen under this key.',
}

const RECOVER_MISSING: Failure = {
  code: 'recover_missing',
  message: 'The record counts on a recover function for its operation, and no process has had one for long.',
}

function exhausted(looks: number, last: Failure): Failure {
  return {
    code: 'recover_exhausted',
    message: `recover was asked ${looks} times. The last time: ${last.message}`,
  }
}
