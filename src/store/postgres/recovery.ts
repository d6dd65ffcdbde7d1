import { type LookEnd, OWNER_VANISHED } from '../../record/index.ts'
import type { Look, RecoveryStore, Unattended, UnattendedRequest } from '../recovery.ts'
import type { Connections } from './connections.ts'
import { bind, type Row } from './flush.ts'
import type { Value } from './messages.ts'
import { arrayLiteral, kindOf, replyValues } from './rows.ts'
import type { Statements } from './statements.ts'

/** Records that wait for a worker or an operator, in PostgreSQL. */
export class PostgresRecovery implements RecoveryStore {
  readonly #connections: Connections
  readonly #statements: Statements

  constructor(connections: Connections, statements: Statements) {
    this.#connections = connections
    this.#statements = statements
  }

  async unattended(request: UnattendedRequest): Promise<readonly Unattended[]> {
    const { graceMs, operations, orphanedMs, limit } = request
    const values = [`${graceMs}`, arrayLiteral(operations), `${orphanedMs}`, `${limit}`]
    const { rows } = await this.#connections.run(bind(this.#statements.findUnattended, ...values))
    return rows[0]!.map(readUnattended)
  }

  async vanish(
    seen: Unattended,
    graceMs: number,
    retentionMs: number,
  ): Promise<'unknown' | 'retryable' | null> {
    const { code, message } = OWNER_VANISHED
    const values = [...seenValues(seen), `${graceMs}`, `${retentionMs}`, code, message]
    const { rows } = await this.#connections.runBounded(bind(this.#statements.vanish, ...values))
    return (rows.at(-1)![0]?.[0] ?? null) as 'unknown' | 'retryable' | null
  }

  async takeLook(seen: Unattended, holdMs: number): Promise<Look | null> {
    const values = [...seenValues(seen), `${seen.looks}`, `${holdMs}`]
    const { rows } = await this.#connections.runBounded(bind(this.#statements.takeLook, ...values))
    const taken = rows.at(-1)![0]
    return taken === undefined ? null : { ...seen, looks: Number(taken[0]) }
  }

  async endLook(look: Look, end: LookEnd, retentionMs: number): Promise<boolean> {
    const values = [...seenValues(look), `${look.looks}`, ...endValues(end, retentionMs)]
    const { rows } = await this.#connections.runBounded(bind(this.#statements.endLook, ...values))
    return rows.at(-1)!.length === 1
  }
}

const NO_REPLY: readonly Value[] = [null, null, null, null, null]

function endValues(end: LookEnd, retentionMs: number): Value[] {
  switch (end.end) {
    case 'found':
      return ['completed', null, `${retentionMs}`, ...replyValues(end.reply), null, null]
    case 'void':
      return ['retryable', null, `${retentionMs}`, ...NO_REPLY, end.failure.code, end.failure.message]
    case 'again':
      return ['unknown', `${end.inMs}`, null, ...NO_REPLY, null, null]
    case 'parked':
      return ['parked', null, null, ...NO_REPLY, end.failure.code, end.failure.message]
    default:
      return end satisfies never
  }
}

function seenValues({ id, fence, attemptId }: Unattended): Value[] {
  return [id.account, id.operation, id.key, `${fence}`, attemptId]
}

function readUnattended(row: Row): Unattended {
  const [account, operation, key, fence, attemptId, state, kind, looks, code, message] = row
  return {
    id: { account: account!, operation: operation!, key: key! },
    fence: Number(fence),
    attemptId: attemptId!,
    state: state as Unattended['state'],
    kind: kindOf(kind!),
    looks: Number(looks),
    failure: code == null ? null : { code, message: message ?? '' },
  }
}
