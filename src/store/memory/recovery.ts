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
  readonly retentionOf: (id: RecordId, otherwise_ms: number) => number
}

/** Records that wait for a worker or an operator, in memory. */
export class MemoryRecovery implements RecoveryStore {
  readonly #shelf: MemoryShelf

  constructor(shelf: MemoryShelf) {
    this.#shelf = shelf
  }

  async unattended(request: UnattendedRequest): Promise<readonly Unattended[]> {
    const { grace_ms, operations, orphaned_ms, limit } = request
    const now = this.#shelf.now()
    const found: Unattended[] = []
    for (const { id, record } of this.#shelf.all()) {
      if (record.state === 'in_progress' && record.lease_until + grace_ms <= now)
        found.push(seenOf(id, record))
      if (record.state !== 'unknown' || (record.look_at ?? now) > now) continue
      const mine = record.kind !== 'handler_recoverable' || operations.includes(id.operation)
      if (mine || (record.look_at ?? now) + orphaned_ms <= now) found.push(seenOf(id, record))
    }
    return found.slice(0, limit)
  }

  async vanish(seen: Unattended, grace_ms: number, retention_ms: number) {
    const now = this.#shelf.now()
    const record = this.#still(seen)
    if (record?.state !== 'in_progress' || record.lease_until + grace_ms > now) return null
    const kept_ms = this.#shelf.retentionOf(seen.id, retention_ms)
    const rerunnable = record.kind === 'handler_rerunnable'
    const next = rerunnable ? release(record, OWNER_VANISHED, kept_ms, now) : vanish(record, grace_ms, now)
    this.#shelf.put(seen.id, next)
    return rerunnable ? 'retryable' : 'unknown'
  }

  async takeLook(seen: Unattended, hold_ms: number): Promise<Look | null> {
    const record = this.#looked(seen)
    const taken = record === null ? null : takeLook(record, hold_ms, this.#shelf.now())
    if (taken === null) return null
    this.#shelf.put(seen.id, taken)
    return { ...seen, looks: taken.looks }
  }

  async endLook(look: Look, end: LookEnd, retention_ms: number): Promise<boolean> {
    const record = this.#looked(look)
    if (record === null) return false
    const kept_ms = this.#shelf.retentionOf(look.id, retention_ms)
    this.#shelf.put(look.id, endLook(record, end, kept_ms, this.#shelf.now()))
    return true
  }

  #still({ id, fence, attempt_id }: Unattended): OnceRecord | null {
    const record = this.#shelf.get(id)
    return record?.fence === fence && record.attempt_id === attempt_id ? record : null
  }

  #looked(seen: Unattended): Unknown | null {
    const record = this.#still(seen)
    return record?.state === 'unknown' && record.looks === seen.looks ? record : null
  }
}

function seenOf(id: RecordId, record: OnceRecord): Unattended {
  const { fence, attempt_id, kind } = record
  const failure = 'failure' in record ? record.failure : null
  const state = record.state as Unattended['state']
  return { id, fence, attempt_id, kind, state, looks: record.state === 'unknown' ? record.looks : 0, failure }
}
