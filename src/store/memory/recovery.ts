import {
  endLook,
  type LookEnd,
  type OnceRecord,
  OWNER_VANISHED,
  type RecordId,
  release,
  takeLook,
  type Unknown,
  vanish,
} from '../../record/index.ts'
import type { Look, RecoveryStore, Unattended, UnattendedRequest } from '../recovery.ts'

/** What the memory store lends to the part that looks after its records. */
export interface MemoryShelf {
  readonly now: () => number
  readonly all: () => Iterable<{ readonly id: RecordId; readonly record: OnceRecord }>
  readonly get: (id: RecordId) => OnceRecord | null
  readonly put: (id: RecordId, next: OnceRecord) => void
  /** What the claim left; the given one where it left none. */
  readonly retentionOf: (id: RecordId, otherwiseMs: number) => number
}

/** Records that wait for a worker or an operator, in memory. */
export class MemoryRecovery implements RecoveryStore {
  readonly #shelf: MemoryShelf

  constructor(shelf: MemoryShelf) {
    this.#shelf = shelf
  }

  async unattended(request: UnattendedRequest): Promise<readonly Unattended[]> {
    const { graceMs, operations, orphanedMs, limit } = request
    const now = this.#shelf.now()
    const found: Unattended[] = []
    for (const { id, record } of this.#shelf.all()) {
      if (record.state === 'in_progress' && record.leaseUntil + graceMs <= now) found.push(seenOf(id, record))
      if (record.state !== 'unknown' || (record.lookAt ?? now) > now) continue
      const mine = record.kind !== 'handler_recoverable' || operations.includes(id.operation)
      if (mine || (record.lookAt ?? now) + orphanedMs <= now) found.push(seenOf(id, record))
    }
    return found.slice(0, limit)
  }

  async vanish(seen: Unattended, graceMs: number, retentionMs: number) {
    const now = this.#shelf.now()
    const record = this.#still(seen)
    if (record?.state !== 'in_progress' || record.leaseUntil + graceMs > now) return null
    const keptMs = this.#shelf.retentionOf(seen.id, retentionMs)
    const rerunnable = record.kind === 'handler_rerunnable'
    const next = rerunnable ? release(record, OWNER_VANISHED, keptMs, now) : vanish(record, graceMs, now)
    this.#shelf.put(seen.id, next)
    return rerunnable ? 'retryable' : 'unknown'
  }

  async takeLook(seen: Unattended, holdMs: number): Promise<Look | null> {
    const record = this.#looked(seen)
    const taken = record === null ? null : takeLook(record, holdMs, this.#shelf.now())
    if (taken === null) return null
    this.#shelf.put(seen.id, taken)
    return { ...seen, looks: taken.looks }
  }

  async endLook(look: Look, end: LookEnd, retentionMs: number): Promise<boolean> {
    const record = this.#looked(look)
    if (record === null) return false
    const keptMs = this.#shelf.retentionOf(look.id, retentionMs)
    this.#shelf.put(look.id, endLook(record, end, keptMs, this.#shelf.now()))
    return true
  }

  #still({ id, fence, attemptId }: Unattended): OnceRecord | null {
    const record = this.#shelf.get(id)
    return record?.fence === fence && record.attemptId === attemptId ? record : null
  }

  #looked(seen: Unattended): Unknown | null {
    const record = this.#still(seen)
    return record?.state === 'unknown' && record.looks === seen.looks ? record : null
  }
}

function seenOf(id: RecordId, record: OnceRecord): Unattended {
  const { fence, attemptId, kind } = record
  const failure = 'failure' in record ? record.failure : null
  const state = record.state as Unattended['state']
  return { id, fence, attemptId, kind, state, looks: record.state === 'unknown' ? record.looks : 0, failure }
}
