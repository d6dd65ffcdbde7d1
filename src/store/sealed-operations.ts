import type { RecordId } from '../record/index.ts'
import type { Seal, Sealed, SealedPlace } from '../seal/index.ts'
import type { Owned, TransactionEnd } from './contract.ts'
import type {
  Beginning,
  DiscardedResult,
  OperationHead,
  OperationStore,
  Resumed,
  Written,
} from './operations.ts'

/** Operations with inputs, results, replies and evidence sealed on their way in, and opened on their way out. */
export function sealedOperations<Tx>(inner: OperationStore<Tx>, seal: Seal): OperationStore<Tx> {
  const closing = (kind: SealedPlace['kind'], id: RecordId, { bytes }: Sealed): Sealed =>
    seal.seal({ kind, id, beside: [] }, bytes)
  const opening = (kind: SealedPlace['kind'], id: RecordId, sealed: Sealed): Sealed => ({
    bytes: seal.open({ kind, id, beside: [] }, sealed),
    sealedBy: null,
  })

  const headOf = (id: RecordId, head: OperationHead): OperationHead => ({
    ...head,
    input: closing('input', id, head.input),
  })
  const beginningOf = (beginning: Beginning): Beginning => ({
    ...beginning,
    head: headOf(beginning.id, beginning.head),
  })
  const writtenOf = (id: RecordId, written: Written): Written =>
    written.state === 'completed'
      ? { ...written, reply: seal.sealReply(id, written.reply) }
      : {
          ...written,
          points: { ...written.points, progress: closing('progress', id, written.points.progress) },
        }
  /** Runs a step whose result is sealed for the store, while what it wrote itself is kept for the caller. */
  const sealing = async (
    id: RecordId,
    work: (tx: Tx) => Promise<Written>,
    run: (sealed: (tx: Tx) => Promise<Written>) => Promise<TransactionEnd<Written>>,
  ): Promise<TransactionEnd<Written>> => {
    let plain: Written | null = null
    const end = await run(async (tx) => {
      plain = await work(tx)
      return writtenOf(id, plain)
    })
    return end.end === 'committed' || end.end === 'in_doubt' ? { ...end, reply: plain ?? end.reply } : end
  }
  /** The taker owns the record by now: an error in place of it would keep the record from its next owner until the lease is over. */
  const resumedOf = (id: RecordId, resumed: Resumed): Resumed => {
    try {
      const input = opening('input', id, resumed.input)
      const progress = resumed.progress === null ? null : opening('progress', id, resumed.progress)
      return { ...resumed, input, progress }
    } catch {
      return { ...resumed, input: NOTHING, progress: null, unreadable: true }
    }
  }

  /** The audit outlives every key: what cannot be opened any more keeps no one from the rest. */
  const openingOrNull = (id: RecordId, { bytes, sealedBy }: DiscardedResult): Buffer | null => {
    try {
      return bytes === null ? null : opening('discarded', id, { bytes, sealedBy }).bytes
    } catch {
      return null
    }
  }

  return {
    begin: (beginning, bounds, work, crashPoint) =>
      sealing(beginning.id, work, (sealed) =>
        inner.begin(beginningOf(beginning), bounds, sealed, crashPoint),
      ),
    claim: (beginning) => inner.claim(beginningOf(beginning)),
    step: (owned, bounds, work, crashPoint) =>
      sealing(owned.id, work, (sealed) => inner.step(owned, bounds, sealed, crashPoint)),
    settleStep: (owned: Owned, written) => inner.settleStep(owned, written),
    write: (owned, written, bounds) => inner.write(owned, writtenOf(owned.id, written), bounds),
    async takeOver(request) {
      const { id } = request.seen
      const head = request.head === null ? null : headOf(id, request.head)
      const resumed = await inner.takeOver({ ...request, head, keyIds: seal.keyIds })
      return resumed === null ? null : resumedOf(id, resumed)
    },
    doubt: (owned, failure, next) => inner.doubt(owned, failure, next),
    keepFor: (owned, retentionMs) => inner.keepFor(owned, retentionMs),
    park: (owned, failure, waiting) => inner.park(owned, failure, waiting),
    abandoned: (known, graceMs, limit) => inner.abandoned(known, graceMs, limit),
    due: (known, limit) => inner.due(known, limit),
    longestWaiting: (overdueMs, except) => inner.longestWaiting(overdueMs, except),
    addEvidence: (account, callKey, result, signed) =>
      inner.addEvidence(account, callKey, closing('evidence', evidenceId(account, callKey), result), signed),
    async progress(id) {
      const found = await inner.progress(id)
      return found === null ? null : opening('progress', id, found)
    },
    async evidence(id, callKey) {
      const found = await inner.evidence(id, callKey)
      if (found === null) return null
      const { receivedAt } = found
      return { ...opening('evidence', evidenceId(id.account, callKey), found), receivedAt }
    },
    refuseEvidence: (id, callKey, receivedAt) => inner.refuseEvidence(id, callKey, receivedAt),
    discard: (request) => {
      const { id, points, discarded } = request
      return inner.discard({
        ...request,
        points: { ...points, progress: closing('progress', id, points.progress) },
        discarded: closing('discarded', id, discarded),
      })
    },
    async discarded(id) {
      const found = await inner.discarded(id)
      return found.map((one) => ({ ...one, bytes: openingOrNull(id, one), sealedBy: null }))
    },
  }
}

const NOTHING: Sealed = { bytes: Buffer.alloc(0), sealedBy: null }

/** Where evidence about a call is sealed. */
export function evidencePlace(account: string, callKey: string): SealedPlace {
  return { kind: 'evidence', id: evidenceId(account, callKey), beside: [] }
}

/** Evidence belongs to a call, and knows no record: it stands where no record can. */
function evidenceId(account: string, callKey: string): RecordId {
  return { account, operation: '', key: callKey }
}
