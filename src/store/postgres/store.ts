import type { Pool } from 'pg'
import { OnlyonceError } from '../../errors.ts'
import { LIMITS } from '../../limits.ts'
import type { Attempt, Decision, Failure, RecordId, Reply } from '../../record/index.ts'
import type {
  ClaimRequest,
  Owned,
  Queryable,
  Seen,
  Store,
  TransactionAttempt,
  TransactionEnd,
  WithinEnd,
} from '../contract.ts'
import { claim } from './claim.ts'
import { Connections } from './connections.ts'
import { bind, type Statement } from './flush.ts'
import { Looker } from './looker.ts'
import { isMigrated, migrate } from './migrate.ts'
import type { PostgresSettings } from './options.ts'
import { readAttempt, readRecord, replyValues } from './rows.ts'
import { settle, writeRetryable } from './settle.ts'
import { type Statements, statementsFor } from './statements.ts'
import { transact } from './transact.ts'
import type { PostgresTx } from './tx.ts'
import { within } from './within.ts'

/** Records in PostgreSQL. Each method is one step; what the steps mean is in `record/` and `protect/`. */
export class PostgresStore implements Store<PostgresTx> {
  readonly #pool: Pool
  readonly #owns_pool: boolean
  readonly #settings: PostgresSettings
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #looker: Looker

  constructor(pool: Pool, owns_pool: boolean, settings: PostgresSettings) {
    this.#pool = pool
    this.#owns_pool = owns_pool
    this.#settings = settings
    this.#connections = new Connections(pool, settings)
    this.#statements = statementsFor(settings.schema)
    this.#looker = new Looker(this.#connections)
  }

  async start(): Promise<void> {
    const { schema, migrate: mode, statement_max_ms } = this.#settings
    // First only to see: the common case is answered at once, and must not hang where nobody answers.
    const verified = await this.#connections.use((client) => isMigrated(client, schema), statement_max_ms)
    if (verified && mode === 'apply') return
    const max_ms = statement_max_ms + LIMITS.migration_wait_max_ms
    await this.#connections.use((client) => migrate(client, { schema, mode }), max_ms)
  }

  look(id: RecordId): Promise<Seen | null> {
    return this.#looker.look(id)
  }

  async history(id: RecordId): Promise<readonly Attempt[]> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.lookHistory, id.account, id.operation, id.key, `${LIMITS.history_max}`),
    )
    return rows[0]!.map(readAttempt).reverse()
  }

  claim(request: ClaimRequest): Promise<Decision> {
    return claim(this.#connections, this.#statements, request)
  }

  complete(owned: Owned, reply: Reply, retention_ms: number): Promise<void> {
    return this.#write(
      this.#statements.complete,
      'completed',
      owned,
      `${retention_ms}`,
      ...replyValues(reply),
    )
  }

  release(owned: Owned, { code, message }: Failure, retention_ms: number): Promise<void> {
    return this.#write(this.#statements.release, 'retryable', owned, `${retention_ms}`, code, message)
  }

  doubt(owned: Owned, { code, message }: Failure): Promise<void> {
    return this.#write(this.#statements.doubt, 'unknown', owned, code, message)
  }

  extend(owned: Owned, lease_ms: number): Promise<void> {
    return this.#write(this.#statements.extend, 'in_progress', owned, `${lease_ms}`)
  }

  transact(
    attempt: TransactionAttempt,
    work: (tx: PostgresTx) => Promise<Reply>,
    crashPoint: (point: string) => void,
  ): Promise<TransactionEnd> {
    return transact(this.#connections, this.#statements, attempt, work, crashPoint)
  }

  settle(attempt: TransactionAttempt): Promise<'committed' | 'rolled_back'> {
    return settle(this.#connections, this.#statements, attempt)
  }

  leaveRetryable(attempt: TransactionAttempt, failure: Failure): Promise<boolean> {
    return writeRetryable(this.#connections, this.#statements, attempt, failure)
  }

  within(
    tx: Queryable,
    request: ClaimRequest,
    retention_ms: number,
    work: (tx: Queryable) => Promise<Reply>,
  ): Promise<WithinEnd> {
    return within(tx, this.#statements, this.#settings, request, retention_ms, work)
  }

  /** Connections that are still in use then are not waited for: their work was given its time before. */
  async close(): Promise<void> {
    if (!this.#owns_pool) return
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.pool_end_max_ms)
    })
    await Promise.race([this.#pool.end(), enough])
    clearTimeout(timer)
  }

  /** A write by an owner. No row means that the fence is old, or that this very write was done before. */
  async #write(
    statement: Statement,
    state: string,
    { id, fence, attempt_id }: Owned,
    ...values: readonly (string | Buffer | null)[]
  ): Promise<void> {
    const where = [id.account, id.operation, id.key] as const
    const { rows } = await this.#connections.runBounded(bind(statement, ...where, `${fence}`, ...values))
    if (rows.at(-1)!.length === 1) return
    const found = (await this.#connections.run(bind(this.#statements.lookOne, ...where))).rows[0]![0]
    const record = found === undefined ? null : readRecord(found).record
    if (record?.attempt_id === attempt_id && record.state === state && state !== 'in_progress') return
    throw new OnlyonceError('lease_lost')
  }
}
