import { LIMITS } from '../../core/limits.ts'
import { Deadline } from '../../core/retry.ts'
import type { Outcome, TransactionRequest } from '../transaction.ts'
import { addressOf } from './flights.ts'

type Replayed = Extract<Outcome, { outcome: 'executed' | 'replayed' }>
type Asking = Pick<TransactionRequest, 'id' | 'fingerprint'>

interface Kept {
  readonly keyId: string
  readonly digest: Buffer
  readonly outcome: Replayed
  readonly until: Deadline
  readonly sizeBytes: number
}

/**
 * Replies that were replayed a moment ago. A completed reply never changes, so clients that retry in a storm need
 * not ask the database each time. Bounded in bytes and in time; the oldest go first. A request that brings another
 * fingerprint is not answered here: the record decides.
 */
export class RecentReplies {
  readonly #kept = new Map<string, Kept>()
  #sizeBytes = 0

  find({ id, fingerprint }: Asking): Replayed | null {
    if (this.#kept.size === 0) return null
    const address = addressOf(id)
    const kept = this.#kept.get(address)
    if (kept === undefined) return null
    if (kept.until.passed) {
      this.#drop(address, kept)
      return null
    }
    return kept.keyId === fingerprint.keyId && kept.digest.equals(fingerprint.digest) ? kept.outcome : null
  }

  /** Only what came from a record: a first execution is asked for again by few. */
  keep({ id, fingerprint }: Asking, outcome: Outcome): void {
    if (outcome.outcome !== 'replayed') return
    const sizeBytes = (outcome.reply.body?.length ?? 0) + OVERHEAD_BYTES
    if (sizeBytes > LIMITS.recentRepliesMaxBytes / 16) return
    const address = addressOf(id)
    const before = this.#kept.get(address)
    if (before !== undefined) this.#drop(address, before)
    const until = new Deadline(LIMITS.recentReplyMaxMs)
    this.#kept.set(address, { ...fingerprint, outcome, until, sizeBytes })
    this.#sizeBytes += sizeBytes
    for (const [oldest, kept] of this.#kept) {
      if (this.#sizeBytes <= LIMITS.recentRepliesMaxBytes) break
      this.#drop(oldest, kept)
    }
  }

  #drop(address: string, { sizeBytes }: Kept): void {
    this.#kept.delete(address)
    this.#sizeBytes -= sizeBytes
  }
}

/** What an entry takes beside its body, roughly. */
const OVERHEAD_BYTES = 1_024
