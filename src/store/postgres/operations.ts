import { OnlyonceError } from '../../core/errors.ts'
import { Deadline } from '../../core/retry.ts'
import type { Failure, RecordId } from '../../record/index.ts'
import type { Sealed } from '../../seal/index.ts'
import type { CrashPoint, Owned, TransactionEnd } from '../contract.ts'
import type {
  Beginning,
  Claimed,
  DiscardedResult,
  DiscardRequest,
  EvidenceEnd,
  Known,
  NextLook,
  OperationStore,
  Resumed,
  Signed,
  StepBounds,
  Takable,
  TakeOver,
  ToldEvidence,
  Waiting,
  Written,
} from '../operations.ts'
import { classify } from './classify.ts'
import type { Connections } from './connections.ts'
import { discardResult, readDiscarded } from './discard.ts'
import { addEvidence, readEvidence } from './evidence.ts'
import { type Bound, bind, type Row, type Statement } from './flush.ts'
import type { Value } from './messages.ts'
import { arrayLiteral, readResumed, replyValues } from './rows.ts'
import { BEGIN, type Statements } from './statements.ts'
import type { PostgresTx } from './tx.ts'
import { completedValues, identityValues } from './values.ts'
import { type Work, WorkTransaction } from './work-transaction.ts'

/** Durable operations in PostgreSQL. */
export class PostgresOperations implements OperationStore<PostgresTx> {
  readonly #connections: Connections
  readonly #statements: Statements

  constructor(connections: Connections, statements: Statements) {
    this.#connections = connections
    this.#statements = statements
  }

  begin(
    beginning: Beginning,
    bounds: StepBounds,
    work: Work<Written>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd<Written>> {
    return this.#transact(
      () => [],
      bounds,
      work,
      crashPoint,
      (written) =>
        written.state === 'completed'
          ? bind(this.#statements.insertCompleted, ...completedValues(beginning, written.reply))
          : bind(this.#statements.insertBegun, ...begunValues(beginning, written)),
    )
  }

  step(
    owned: Owned,
    bounds: StepBounds & Pick<Beginning, 'leaseMs' | 'retentionMs'>,
    work: Work<Written>,
    crashPoint: CrashPoint,
  ): Promise<TransactionEnd<Written>> {
    const { lockOwned, lockOwnedAt } = this.#statements
    const where = ownedValues(owned)
    let { place } = owned
    const lock = () => {
      if (bounds.onLock !== undefined) place = bounds.onLock()
      return [place === undefined ? bind(lockOwned, ...where) : bind(lockOwnedAt, ...where, place)]
    }
    return this.#transact(lock, bounds, work, crashPoint, (written) =>
      this.#write(owned, written, bounds, place),
    )
  }

  async claim(beginning: Beginning): Promise<Claimed> {
    try {
      const values = begunValues(beginning, null)
      await this.#connections.runBounded(bind(this.#statements.insertBegun, ...values))
      return 'claimed'
    } catch (error) {
      if (classify(error) === 'lock_wait') return 'busy'
      if (classify(error) !== 'unique') throw error
    }
    // Ours, by an earlier try of the same attempt whose answer was lost.
    const row = await this.#settleRow(beginning)
    return row?.[1] === beginning.claimant.attemptId ? 'claimed' : 'conflict'
  }

  /** A step that is still open holds the row, so the transaction that has the lock knows how it ended. */
  async settleStep(owned: Owned, written: Written): Promise<'committed' | 'rolled_back'> {
    const deadline = new Deadline(this.#connections.settings.settleMaxMs)
    for (let tries = 0; ; tries += 1) {
      try {
        const row = await this.#settleRow(owned)
        if (isDone(row, owned, written)) return 'committed'
        if (row?.[0] !== 'in_progress' || row[1] !== owned.attemptId) throw new OnlyonceError('lease_lost')
        return 'rolled_back'
      } catch (cause) {
        if (cause instanceof OnlyonceError && cause.code === 'lease_lost') throw cause
        if (!(await deadline.backOff(tries))) throw new OnlyonceError('outcome_unknown', { cause })
      }
    }
  }

  async write(
    owned: Owned,
    written: Written,
    bounds: Pick<Beginning, 'leaseMs' | 'retentionMs'>,
  ): Promise<Owned['place']> {
    const { rows } = await this.#connections.runBounded(this.#write(owned, written, bounds, undefined))
    const row = rows.at(-1)![0]
    if (row !== undefined) return row[0] ?? undefined
    // No row: the fence is old, or this very write was done before and its answer was lost.
    if (!isDone(await this.#settleRow(owned), owned, written)) throw new OnlyonceError('lease_lost')
    return undefined
  }

  async takeOver(request: TakeOver): Promise<Resumed | null> {
    const { seen, claimant, leaseMs, head, versions, keyIds = [] } = request
    const { id, fence, state } = seen
    const { attemptId, owner, trace, fingerprint } = claimant
    const where = [id.account, id.operation, id.key, `${fence}`, state]
    const take = bind(
      this.#statements.takeOver,
      ...where,
      ...[attemptId, owner, trace, fingerprint?.digest ?? null, fingerprint?.keyId ?? null],
      `${leaseMs}`,
      ...[head?.version ?? null, head?.input.bytes ?? null, head?.input.sealedBy ?? null],
      ...[numeral(head?.deadlineMs), numeral(head?.retentionMs)],
      ...[arrayLiteral(versions), arrayLiteral(keyIds)],
    )
    const taken = await this.#connections.runBounded(take).catch((error) => {
      // A step of its owner is still open, also where its lease is over.
      if (classify(error) === 'lock_wait') return null
      throw error
    })
    const row = taken?.rows.at(-1)?.[0]
    if (row !== undefined) return readResumed(row)
    const { rows } = await this.#connections.run(bind(this.#statements.lookNeeds, ...where))
    refuseWhatItLacks(request, rows[0]![0])
    return null
  }

  doubt(owned: Owned, { code, message }: Failure, next: NextLook): Promise<void> {
    const { waitsFor, waitsStep, looks, inMs, retentionMs } = next
    const look = [waitsFor, waitsStep, `${looks}`, numeral(inMs), `${retentionMs}`]
    return this.#leave('unknown', this.#statements.doubtOperation, owned, code, message, ...look)
  }

  async keepFor(owned: Owned, retentionMs: number): Promise<void> {
    const keep = bind(this.#statements.keepFor, ...ownedValues(owned), `${retentionMs}`)
    const { rows } = await this.#connections.runBounded(keep)
    if (rows.at(-1)!.length === 0) throw new OnlyonceError('lease_lost')
  }

  park(owned: Owned, { code, message }: Failure, waiting: Waiting): Promise<void> {
    const { waitsFor, waitsStep, retentionMs, looks } = waiting
    const values = [code, message, waitsFor, waitsStep, `${retentionMs}`, `${looks}`]
    return this.#leave('parked', this.#statements.parkOperation, owned, ...values)
  }

  async abandoned(known: readonly Known[], graceMs: number, limit: number): Promise<readonly Takable[]> {
    const values = [...knownValues(known), `${graceMs}`, `${limit}`]
    return await this.#find(bind(this.#statements.findAbandoned, ...values))
  }

  async due(known: readonly Known[], limit: number): Promise<readonly Takable[]> {
    return await this.#find(bind(this.#statements.findDue, ...knownValues(known), `${limit}`))
  }

  async longestWaiting(overdueMs: number, except: readonly string[]): Promise<readonly Takable[]> {
    const { findLongestWaiting } = this.#statements
    return await this.#find(bind(findLongestWaiting, `${overdueMs}`, arrayLiteral(except)))
  }

  addEvidence(account: string, callKey: string, result: Sealed, signed: Signed | null): Promise<EvidenceEnd> {
    return addEvidence(this.#connections, this.#statements, account, callKey, result, signed)
  }

  async progress({ account, operation, key }: RecordId): Promise<Sealed | null> {
    const { rows } = await this.#connections.run(bind(this.#statements.lookProgress, account, operation, key))
    const row = rows[0]![0]
    return row === undefined ? null : { bytes: Buffer.from(row[0]!, 'hex'), sealedBy: row[1] ?? null }
  }

  evidence(id: RecordId, callKey: string): Promise<ToldEvidence | null> {
    return readEvidence(this.#connections, this.#statements, id, callKey)
  }

  async refuseEvidence({ account }: RecordId, callKey: string, receivedAt: string): Promise<void> {
    await this.#connections.run(bind(this.#statements.refuseEvidence, account, callKey, receivedAt))
  }

  discard(request: DiscardRequest): Promise<boolean> {
    return discardResult(this.#connections, this.#statements, request)
  }

  discarded(id: RecordId): Promise<readonly DiscardedResult[]> {
    return readDiscarded(this.#connections, this.#statements, id)
  }

  #transact(
    first: () => readonly Bound[],
    { isolation, timeMaxMs }: StepBounds,
    work: Work<Written>,
    crashPoint: CrashPoint,
    record: (written: Written) => Bound,
  ): Promise<TransactionEnd<Written>> {
    const script = {
      name: 'step',
      begin: bind(BEGIN[isolation]),
      first,
      timeMaxMs,
      finish: (transaction: WorkTransaction<Written>, written: Written) =>
        transaction.commit(written, [...transaction.lastBounds(), record(written)]),
    }
    return new WorkTransaction(this.#connections, script, crashPoint).run(work)
  }

  #write(
    owned: Owned,
    written: Written,
    { leaseMs, retentionMs }: Pick<Beginning, 'leaseMs' | 'retentionMs'>,
    place: Owned['place'],
  ): Bound {
    const { finishOperation, finishOperationAt, writePoints, writePointsAt } = this.#statements
    const where = ownedValues(owned)
    const at = place === undefined ? [] : [place]
    if (written.state === 'completed') {
      const { reply, count, last } = written
      const values = [`${retentionMs}`, `${count}`, last, ...replyValues(reply)]
      return bind(place === undefined ? finishOperation : finishOperationAt, ...where, ...values, ...at)
    }
    const values = [`${leaseMs}`, ...pointValues(written.points)]
    return bind(place === undefined ? writePoints : writePointsAt, ...where, ...values, ...at)
  }

  async #leave(
    state: 'unknown' | 'parked',
    statement: Statement,
    owned: Owned,
    ...values: readonly Value[]
  ): Promise<void> {
    const { rows } = await this.#connections.runBounded(bind(statement, ...ownedValues(owned), ...values))
    if (rows.at(-1)!.length === 1) return
    const row = await this.#settleRow(owned)
    if (row?.[0] !== state || row[1] !== owned.attemptId) throw new OnlyonceError('lease_lost')
  }

  async #settleRow({ id }: Pick<Owned, 'id'>): Promise<Row | undefined> {
    const { lockToSettle } = this.#statements
    const found = await this.#connections.runBounded(bind(lockToSettle, id.account, id.operation, id.key))
    return found.rows.at(-1)![0]
  }

  async #find(bound: Bound): Promise<readonly Takable[]> {
    const { rows } = await this.#connections.run(bound)
    return rows[0]!.map(([account, operation, key, fence, state]) => ({
      id: { account: account!, operation: operation!, key: key! },
      fence: Number(fence),
      state: state as Takable['state'],
    }))
  }
}

/** The row of `lookNeeds`, if it is still what was seen, tells what it takes to go on with the record. */
function refuseWhatItLacks({ seen, versions, keyIds = [] }: TakeOver, row: Row | undefined): void {
  if (row === undefined || seen.state === 'expired') return
  const [version, ...needed] = row
  if (version != null && !versions.includes(version)) {
    const detail = `It is version ${version} of ${seen.id.operation}.`
    throw new OnlyonceError('operation_unknown', { detail })
  }
  const missing = needed.find((keyId) => keyId != null && !keyIds.includes(keyId))
  if (missing != null) throw new OnlyonceError('seal_key_unknown', { detail: `Its id is ${missing}.` })
}

/** The row of `lockToSettle` shows what this attempt has written. */
function isDone(row: Row | undefined, { attemptId }: Owned, written: Written): boolean {
  if (row?.[1] !== attemptId) return false
  // What was decided in the owner's place is not the owner's write.
  if (written.state === 'completed') return row[0] === 'completed' && row[3] !== 't'
  return Number(row[2] ?? 0) >= written.points.count
}

function begunValues(
  beginning: Beginning,
  written: Extract<Written, { state: 'in_progress' }> | null,
): Value[] {
  const { head, leaseMs, retentionMs } = beginning
  return [
    ...identityValues(beginning),
    `${leaseMs}`,
    head.version,
    head.input.bytes,
    head.input.sealedBy,
    numeral(head.deadlineMs),
    `${retentionMs}`,
    ...(written === null ? [null, null, null, null] : pointValues(written.points)),
  ]
}

function pointValues({
  count,
  last,
  progress,
}: Extract<Written, { state: 'in_progress' }>['points']): Value[] {
  return [`${count}`, last, progress.bytes, progress.sealedBy]
}

function knownValues(known: readonly Known[]): Value[] {
  return [arrayLiteral(known.map(({ name }) => name)), arrayLiteral(known.map(({ version }) => version))]
}

function ownedValues({ id, fence, attemptId }: Owned): Value[] {
  return [id.account, id.operation, id.key, `${fence}`, attemptId]
}

function numeral(value: number | null | undefined): string | null {
  return value == null ? null : `${value}`
}
