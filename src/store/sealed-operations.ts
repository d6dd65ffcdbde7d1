import type { RecordId } from '../record/index.ts'
import type { Seal, Sealed, SealedPlace } from '../seal/index.ts'
import type { Owned, TransactionEnd } from './contract.ts'
import type { Beginning, OperationHead, OperationStore, Resumed, Written } from './operations.ts'

/** Operations with inputs, results, replies and evidence sealed on their way in, and opened on their way out. */
export function sealedOperations<Tx>(inner: OperationStore<Tx>, seal: Seal): OperationStore<Tx> {
  const closing = (kind: SealedPlace['kind'], id: RecordId, { bytes }: Sealed): Sealed =>
    seal.seal({ kind, id, beside: [] }, bytes)
  const opening = (kind: SealedPlace['kind'], id: RecordId, sealed: Sealed): Sealed => ({
    bytes: seal.open({ kind, id, beside: [] }, sealed),
    sealed_by: null,
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
      const resumed = await inner.takeOver({ ...request, head, key_ids: seal.key_ids })
      return resumed === null ? null : resumedOf(id, resumed)
    },
    doubt: (owned, failure, next) => inner.doubt(owned, failure, next),
    keepFor: (owned, retention_ms) => inner.keepFor(owned, retention_ms),
    park: (owned, failure, waiting) => inner.park(owned, failure, waiting),
    abandoned: (known, grace_ms, limit) => inner.abandoned(known, grace_ms, limit),
    due: (known, limit) => inner.due(known, limit),
    longestWaiting: (overdue_ms, except) => inner.longestWaiting(overdue_ms, except),
    addEvidence: (account, call_key, result, signed) =>
      inner.addEvidence(
        account,
        call_key,
        closing('evidence', evidenceId(account, call_key), result),
        signed,
      ),
    async progress(id) {
      const found = await inner.progress(id)
      return found === null ? null : opening('progress', id, found)
    },
    async evidence(id, call_key) {
      const found = await inner.evidence(id, call_key)
      if (found === null) return null
      const { received_at } = found
      return { ...opening('evidence', evidenceId(id.account, call_key), found), received_at }
    },
    refuseEvidence: (id, call_key, received_at) => inner.refuseEvidence(id, call_key, received_at),
  }
}

const NOTHING: Sealed = { bytes: Buffer.alloc(0), sealed_by: null }

/** Evidence belongs to a call, and knows no record: it stands where no record can. */
function evidenceId(account: string, call_key: string): RecordId {
  return { account, operation: '', key: call_key }
}
