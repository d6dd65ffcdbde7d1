import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITS } from '../core/limits.ts'
import { backoffMs, Deadline } from '../core/retry.ts'
import { memberOf } from '../core/thrown.ts'
import type { Failure, RecordId } from '../record/index.ts'
import type { Store } from '../store/contract.ts'

/** A claim that may stand although its caller was told that this request started nothing. */
export interface GivenBack {
  readonly id: RecordId
  readonly attemptId: string
  readonly failure: Failure
  readonly retentionMs: number
}

interface Waiting extends GivenBack {
  /** A claim whose answer was lost may still reach the server: until then no record is no proof. */
  readonly lateUntil: Deadline
  readonly until: Deadline
}

export const CLAIM_UNANSWERED: Failure = {
  code: 'claim_unanswered',
  message: 'The answer to the claim was lost, and this attempt executed nothing.',
}

/**
 * Gives claims back, as soon as the store is there again. A claim that stands all the same would be taken for a crash when
 * its lease is over. Also one that was parked meanwhile is given back: its owner's word still counts.
 *
 * One queue for the whole process, a few at a time: when the store is away, every caller leaves one. A process that ends
 * before the store is back leaves its claims standing; no process can know then that they executed nothing, so they are
 * treated as a crash.
 */
export class GiveBacks {
  readonly #waiting: Waiting[] = []
  #running: Promise<void> | null = null

  add<Tx>(store: Store<Tx>, given: GivenBack, leaseMs: number): void {
    // The oldest goes first: its lease is over soonest, and others have most likely been told of it by then.
    if (this.#waiting.length >= LIMITS.giveBacksMax) this.#waiting.shift()
    this.#waiting.push({
      ...given,
      lateUntil: new Deadline(leaseMs),
      until: new Deadline(LIMITS.giveBackMaxMs),
    })
    this.#running ??= this.#run(store).finally(() => {
      this.#running = null
    })
  }

  /** Resolves when nothing is left to be given back. */
  async idle(): Promise<void> {
    await this.#running
  }

  async #run<Tx>(store: Store<Tx>): Promise<void> {
    for (let tries = 0; this.#waiting.length > 0; ) {
      const batch = this.#waiting.splice(0, LIMITS.giveBacksAtOnce)
      const left = await Promise.all(batch.map((given) => isLeft(store, given)))
      const again = batch.filter((given, i) => left[i] && !given.until.passed)
      this.#waiting.push(...again)
      tries = again.length === 0 ? 0 : tries + 1
      // Giving back keeps no process alive.
      if (tries > 0) await sleep(backoffMs(tries), undefined, { ref: false })
    }
  }
}

/** Tries once; true where it has to be tried again. */
async function isLeft<Tx>(store: Store<Tx>, given: Waiting): Promise<boolean> {
  const { id, attemptId, failure, retentionMs, lateUntil } = given
  try {
    const seen = await store.look(id)
    if (seen === null) return !lateUntil.passed
    const { record } = seen
    const unfinished =
      record.state === 'in_progress' || record.state === 'unknown' || record.state === 'parked'
    if (record.attemptId !== attemptId || !unfinished) return false
    // What the record before may have hidden is not known any more.
    const { fence } = record
    await store.release({ id, fence, attemptId }, failure, retentionMs, fence > 1)
    return false
  } catch (error) {
    return memberOf(error, 'code') !== 'lease_lost'
  }
}
