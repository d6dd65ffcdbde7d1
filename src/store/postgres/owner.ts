import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Failure, Reply } from '../../record/index.ts'
import type { Owned } from '../contract.ts'
import type { Connections } from './connections.ts'
import { bind, type Statement } from './flush.ts'
import type { Group, GroupWrite } from './group.ts'
import { arrayLiteral, bytesLiteral, letterOf, readRecord, replyValues } from './rows.ts'
import type { Statements } from './statements.ts'

interface Completion {
  readonly owned: Owned
  readonly reply: Reply
  readonly retentionMs: number
}

/** What the owner of a record writes. Each write carries the fence, and is safe to repeat. */
export class OwnerWrites {
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #group: Group
  /** Answers whether the row was there with this fence. */
  readonly #complete: GroupWrite<Completion, boolean>

  constructor(connections: Connections, statements: Statements, group: Group) {
    this.#connections = connections
    this.#statements = statements
    this.#group = group
    this.#complete = {
      statement: statements.completeMany,
      idOf: ({ owned }) => owned.id,
      valuesOf: manyValues,
      attemptOf: ({ owned }) => owned.attemptId,
      answerOf: (row) => row !== null,
      alone: (completion) => this.#completeAlone(completion),
    }
  }

  async complete(owned: Owned, reply: Reply, retentionMs: number): Promise<void> {
    const completion = { owned, reply, retentionMs }
    const large = (reply.body?.length ?? 0) > LIMITS.groupReplyMaxBytes
    const done = large
      ? await this.#completeAlone(completion)
      : await this.#group.run(this.#complete, completion)
    if (!done) await this.#requireDone(owned, 'completed')
  }

  async release(
    owned: Owned,
    { code, message }: Failure,
    retentionMs: number,
    effectsPossible: boolean,
  ): Promise<void> {
    const kept = effectsPossible ? letterOf('handler_rerunnable') : null
    const done = await this.#write(this.#statements.release, owned, `${retentionMs}`, code, message, kept)
    if (!done) await this.#requireDone(owned, 'retryable')
  }

  /** No row: it was removed before and the answer was lost, or it is not what the attempt has made. */
  async forget(owned: Owned): Promise<boolean> {
    return (await this.#write(this.#statements.forget, owned)) || !(await this.#hasTrace(owned))
  }

  async #hasTrace({ id, attemptId }: Owned): Promise<boolean> {
    const where = [id.account, id.operation, id.key] as const
    const { lookOne, lookAttempt } = this.#statements
    const { rows } = await this.#connections.run(
      bind(lookOne, ...where),
      bind(lookAttempt, ...where, attemptId),
    )
    const found = rows[0]![0]
    return rows[1]!.length > 0 || (found !== undefined && readRecord(found).record.attemptId === attemptId)
  }

  async doubt(owned: Owned, { code, message }: Failure, lookInMs: number): Promise<void> {
    const done = await this.#write(this.#statements.doubt, owned, code, message, `${lookInMs}`)
    if (!done) await this.#requireDone(owned, 'unknown')
  }

  async extend(owned: Owned, leaseMs: number): Promise<void> {
    const done = await this.#write(this.#statements.extend, owned, `${leaseMs}`)
    if (!done) throw new OnlyonceError('lease_lost')
  }

  #completeAlone({ owned, reply, retentionMs }: Completion): Promise<boolean> {
    return this.#write(this.#statements.complete, owned, `${retentionMs}`, ...replyValues(reply))
  }

  async #write(
    statement: Statement,
    { id, fence, attemptId }: Owned,
    ...values: readonly (string | Buffer | null)[]
  ): Promise<boolean> {
    const where = [id.account, id.operation, id.key, `${fence}`, attemptId] as const
    const { rows } = await this.#connections.runBounded(bind(statement, ...where, ...values))
    return rows.at(-1)!.length === 1
  }

  /**
   * No row means that the fence is old, or that this very write was done before and its answer was lost. What an operator or `recover` has
   * decided in the owner's place is not the owner's write, though it stands under its attempt.
   */
  async #requireDone({ id, attemptId }: Owned, state: string): Promise<void> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.lookOne, id.account, id.operation, id.key),
    )
    const found = rows[0]![0]
    const record = found === undefined ? null : readRecord(found).record
    const own = record?.attemptId === attemptId && record.state === state && !record.decided
    if (!own) throw new OnlyonceError('lease_lost')
  }
}

function manyValues(completions: readonly Completion[]): string[] {
  const texts = (pick: (completion: Completion) => string | null) => arrayLiteral(completions.map(pick))
  return [
    texts(({ owned }) => owned.id.account),
    texts(({ owned }) => owned.id.operation),
    texts(({ owned }) => owned.id.key),
    texts(({ owned }) => `${owned.fence}`),
    texts(({ owned }) => owned.attemptId),
    texts(({ retentionMs }) => `${retentionMs}`),
    texts(({ reply }) => `${reply.status}`),
    texts(({ reply }) => JSON.stringify(reply.headers)),
    bytesLiteral(completions.map(({ reply }) => reply.body)),
    texts(({ reply }) => `${reply.schema}`),
    texts(({ reply }) => reply.sealedBy),
  ]
}
