import { LIMITS } from '../core/limits.ts'
import { type OptionNames, refuseUnknown } from '../core/options.ts'
import { positive } from '../onlyonce/requests.ts'
import type { Ran, Worker } from '../onlyonce/worker.ts'
import { throwWithoutRequest } from '../record/failure.ts'
import type { Takable } from '../store/operations.ts'

/** What workers that go on with operations can be told. */
export interface TakerOptions {
  /**
   * Records in one batch.
   *
   * @default 100
   */
  readonly batchMax?: number
  /**
   * Records at work at once.
   *
   * @default 8
   */
  readonly atOnce?: number
  /** @default 30_000 */
  readonly leaseMs?: number
  /** @default 300_000 */
  readonly inProgressMaxMs?: number
}

export const TAKER_NAMES: OptionNames<TakerOptions> = {
  batchMax: true,
  atOnce: true,
  leaseMs: true,
  inProgressMaxMs: true,
}

/** Checks what such a worker is told, once, when it is made. */
export function checkTaker<T extends TakerOptions>(owner: string, options: T, names: OptionNames<T>): T {
  refuseUnknown(owner, options, names)
  const { batchMax, atOnce, leaseMs, inProgressMaxMs } = options
  for (const [name, value] of Object.entries({ batchMax, atOnce, leaseMs, inProgressMaxMs })) {
    if (value !== undefined) positive(name, value)
  }
  return options
}

/**
 * Works on a batch, some at once. In another order than others do: a worker that comes second to a record has only wasted
 * a question. What one record does harms no other.
 */
export async function takeEach(
  batch: readonly Takable[],
  { batchMax = LIMITS.workerBatchMax, atOnce = LIMITS.workerAtOnce }: TakerOptions,
  take: (seen: Takable) => Promise<boolean>,
  failed: (seen: Takable, error: unknown) => void,
): Promise<Ran> {
  const left = shuffled(batch)
  let done = 0
  const lane = async () => {
    for (let seen = left.pop(); seen !== undefined; seen = left.pop()) {
      try {
        if (await take(seen)) done += 1
      } catch (error) {
        failed(seen, error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, left.length) }, lane))
  // A batch of which nothing could be taken says nothing about the next: wait a little.
  return { done, more: batch.length >= batchMax && done > 0 }
}

function shuffled<T>(list: readonly T[]): T[] {
  const copy = [...list]
  for (let i = copy.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1))
    ;[copy[i], copy[j]] = [copy[j]!, copy[i]!]
  }
  return copy
}

/** A worker has no request to send again: its errors say what happened, and no more. */
export function toldPlainly(worker: Worker): Worker {
  return { ...worker, runOnce: () => worker.runOnce().catch(throwWithoutRequest) }
}
