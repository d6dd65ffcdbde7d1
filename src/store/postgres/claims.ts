import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import { Deadline } from '../../core/retry.ts'
import { asLongAgain, type Decision, decide, ownRun, reserve } from '../../record/index.ts'
import type { ClaimRequest } from '../contract.ts'
import { classify } from './classify.ts'
import type { Connections } from './connections.ts'
import { bind, type Row } from './flush.ts'
import type { Group, GroupWrite } from './group.ts'
import { arrayLiteral, bytesLiteral, letterOf, readRecord } from './rows.ts'
import type { Statements } from './statements.ts'
import { claimValues, supersedeValues } from './values.ts'

/** Claims records, each in a commit of its own, or together with others that are claimed at the same time. */
export class Claims {
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #group: Group
  /** Answers when the record was created, or null where a row is there already. */
  readonly #insert: GroupWrite<ClaimRequest, number | null>

  constructor(connections: Connections, statements: Statements, group: Group) {
    this.#connections = connections
    this.#statements = statements
    this.#group = group
    this.#insert = {
      statement: statements.insertManyInProgress,
      idOf: ({ id }) => id,
      valuesOf: manyValues,
      attemptOf: ({ claimant }) => claimant.attemptId,
      answerOf: (row) => (row === null ? null : Number(row[1])),
      alone: (request) => this.#insertAlone(request),
    }
  }

  /** Waiting too long for a transaction of another's that has the key means that it is in progress there. */
  async claim(request: ClaimRequest): Promise<Decision> {
    const waited = new Deadline(LIMITS.lockWaitMaxMs)
    try {
      return await this.#claim(request)
    } catch (error) {
      if (classify(error) !== 'lock_wait') throw error
      return { kind: 'in_progress', retryAfterMs: asLongAgain(waited.elapsedMs) }
    }
  }

  /**
   * The insert decides; where it gives no row, look with a new snapshot and take the record over by its fence,
   * which another may do first: then look again, a bounded number of times.
   */
  async #claim(request: ClaimRequest): Promise<Decision> {
    const { id, claimant, leaseMs, takeover, graceMs = LIMITS.graceMs } = request
    for (let look = 0; look < LIMITS.claimLooksMax; look += 1) {
      const createdAt = await this.#group.run(this.#insert, request)
      if (createdAt !== null) {
        const record = reserve(null, claimant, leaseMs, createdAt)
        return { kind: 'run', record, from: 'none', effectsPossible: false }
      }
      const row = await this.#look(request)
      if (row === undefined) continue
      const { record, now } = readRecord(row)
      // Ours, by an earlier try of the same attempt whose answer was lost.
      if (record.attemptId === claimant.attemptId && record.state === 'in_progress') return ownRun(record)
      const sameRequest = record.state === 'expired' || request.matches(record.fingerprint)
      const decision = decide(record, { claimant, sameRequest, leaseMs, takeover, graceMs }, now)
      if (decision.kind === 'run') {
        const values = supersedeValues(
          { id, claimant, previous: record, retentionMs: request.retentionMs ?? 0 },
          { state: 'in_progress', leaseMs },
        )
        const taken = await this.#connections.runBounded(bind(this.#statements.supersede, ...values))
        if (taken.rows.at(-1)!.length === 1) return decision
      } else if (decision.kind === 'vanished') {
        if (await this.#doubt(request, record.fence, decision.record.failure, graceMs)) return decision
      } else return decision
    }
    throw new OnlyonceError('overloaded', {
      detail: 'The record changed hands too often while it was claimed.',
    })
  }

  async #insertAlone(request: ClaimRequest): Promise<number | null> {
    const values = claimValues(request)
    const { rows } = await this.#connections.runBounded(bind(this.#statements.insertInProgress, ...values))
    const inserted = rows.at(-1)![0]
    return inserted === undefined ? null : Number(inserted[0])
  }

  async #look({ id }: ClaimRequest): Promise<Row | undefined> {
    const { lookOne } = this.#statements
    return (await this.#connections.run(bind(lookOne, id.account, id.operation, id.key))).rows[0]![0]
  }

  async #doubt(
    { id }: ClaimRequest,
    fence: number,
    { code, message }: { code: string; message: string },
    graceMs: number,
  ): Promise<boolean> {
    const values = [id.account, id.operation, id.key, `${fence}`, code, message, `${graceMs}`]
    const { rows } = await this.#connections.runBounded(bind(this.#statements.doubtVanished, ...values))
    return rows.at(-1)!.length === 1
  }
}

function manyValues(requests: readonly ClaimRequest[]): string[] {
  const texts = (pick: (request: ClaimRequest) => string | null) => arrayLiteral(requests.map(pick))
  return [
    texts(({ id }) => id.account),
    texts(({ id }) => id.operation),
    texts(({ id }) => id.key),
    texts(({ claimant }) => claimant.attemptId),
    texts(({ claimant }) => claimant.owner),
    bytesLiteral(requests.map(({ claimant }) => claimant.fingerprint.digest)),
    texts(({ claimant }) => claimant.fingerprint.keyId),
    texts(({ claimant }) => claimant.trace),
    texts(({ leaseMs }) => `${leaseMs}`),
    texts(({ claimant }) => letterOf(claimant.kind)),
    texts(({ retentionMs }) => (retentionMs === undefined ? null : `${retentionMs}`)),
  ]
}
