import type { Pool } from 'pg'
import { LIMITS } from '../../core/limits.ts'
import type { Attempt, Decision, Failure, RecordId, Reply, Run, Stuck } from '../../record/index.ts'
import type {
  ClaimRequest,
  KeyIds,
  Owned,
  Queryable,
  Reaped,
  ReapRequest,
  Seen,
  Store,
  TransactionAttempt,
  TransactionEnd,
  WithinEnd,
} from '../contract.ts'
import type { DecisionStore } from '../decisions.ts'
import type { LockStore } from '../locks.ts'
import type { RecoveryStore } from '../recovery.ts'
import type { WebhookStore } from '../webhooks.ts'
import { Claims } from './claims.ts'
import { Connections } from './connections.ts'
import { PostgresDecisions } from './decisions.ts'
import { bind } from './flush.ts'
import { Group } from './group.ts'
import { checkKeys } from './key-ids.ts'
import { PostgresLocks } from './locks.ts'
import { Looker } from './looker.ts'
import { takeMadeSecret } from './made-secret.ts'
import { isMigrated, migrate } from './migrate.ts'
import { PostgresOperations } from './operations.ts'
import type { PostgresSettings } from './options.ts'
import { PostgresOutbox } from './outbox.ts'
import { OwnerWrites } from './owner.ts'
import { reap } from './reap.ts'
import { PostgresRecovery } from './recovery.ts'
import { checkRights } from './rights.ts'
import { readAttempt, readStuck } from './rows.ts'
import { settle, writeRetryable } from './settle.ts'
import { type Statements, statementsFor } from './statements.ts'
import { transact } from './transact.ts'
import { startTrouble } from './trouble.ts'
import type { PostgresTx } from './tx.ts'
import { PostgresWebhooks } from './webhooks.ts'
import { within } from './within.ts'

/** Records in PostgreSQL. Each method is one step; what the steps mean is in `record/` and `protect/`. */
export class PostgresStore implements Store<PostgresTx> {
  readonly locks: LockStore
  readonly decisions: DecisionStore
  readonly outbox: PostgresOutbox
  readonly webhooks: WebhookStore
  readonly #starts: 'to_serve' | 'to_look'
  readonly #pool: Pool
  readonly #ownsPool: boolean
  readonly #settings: PostgresSettings
  readonly #connections: Connections
  readonly #statements: Statements
  readonly #looker: Looker
  readonly #claims: Claims
  readonly #owner: OwnerWrites
  readonly operations: PostgresOperations
  readonly recovery: RecoveryStore

  /** `starts`: what serves requests checks its rights and its keys; what only looks and decides needs the tables alone. */
  constructor(
    pool: Pool,
    ownsPool: boolean,
    settings: PostgresSettings,
    starts: 'to_serve' | 'to_look' = 'to_serve',
  ) {
    this.#starts = starts
    this.#pool = pool
    this.#ownsPool = ownsPool
    this.#settings = settings
    this.#connections = new Connections(pool, settings)
    this.outbox = new PostgresOutbox(this.#connections)
    this.webhooks = new PostgresWebhooks(this.#connections)
    this.#statements = statementsFor(settings.schema)
    this.locks = new PostgresLocks(this.#connections, this.#statements)
    this.decisions = new PostgresDecisions(this.#connections, this.#statements)
    this.#looker = new Looker(this.#connections)
    const group = new Group(this.#connections)
    this.#claims = new Claims(this.#connections, this.#statements, group)
    this.#owner = new OwnerWrites(this.#connections, this.#statements, group)
    this.operations = new PostgresOperations(this.#connections, this.#statements)
    this.recovery = new PostgresRecovery(this.#connections, this.#statements)
  }

  async start(keys: KeyIds): Promise<void> {
    try {
      await this.#startSchema()
      if (this.#starts === 'to_look') return
      await checkRights(this.#connections, this.#statements)
      if (keys.made !== undefined) await takeMadeSecret(this.#connections, this.#statements, keys.made)
      await checkKeys(this.#connections, this.#statements, keys)
    } catch (error) {
      throw startTrouble(error)
    }
  }

  look(id: RecordId): Promise<Seen | null> {
    return this.#looker.look(id)
  }

  async history(id: RecordId): Promise<readonly Attempt[]> {
    const { rows } = await this.#connections.run(
      bind(this.#statements.lookHistory, id.account, id.operation, id.key, `${LIMITS.historyMax}`),
    )
    return rows[0]!.map(readAttempt).reverse()
  }

  claim(request: ClaimRequest): Promise<Decision> {
    return this.#claims.claim(request)
  }

  complete(owned: Owned, reply: Reply, retentionMs: number): Promise<void> {
    return this.#owner.complete(owned, reply, retentionMs)
  }

  release(owned: Owned, failure: Failure, retentionMs: number, effectsPossible = false): Promise<void> {
    return this.#owner.release(owned, failure, retentionMs, effectsPossible)
  }

  forget(owned: Owned): Promise<boolean> {
    return this.#owner.forget(owned)
  }

  doubt(owned: Owned, failure: Failure, lookInMs = 0): Promise<void> {
    return this.#owner.doubt(owned, failure, lookInMs)
  }

  extend(owned: Owned, leaseMs: number): Promise<void> {
    return this.#owner.extend(owned, leaseMs)
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

  async stuck(olderThanMs: number): Promise<Stuck> {
    const { rows } = await this.#connections.run(bind(this.#statements.countStuck, `${olderThanMs}`))
    return readStuck(rows[0]!)
  }

  get doubtMaxMs(): number {
    return this.#settings.transactionMaxMs + this.#settings.settleMaxMs
  }

  reap(request: ReapRequest): Promise<Reaped> {
    return reap(this.#connections, this.#statements, request)
  }

  within(
    tx: Queryable,
    request: ClaimRequest,
    retentionMs: number,
    work: (tx: Queryable, claimed: Run) => Promise<Reply>,
  ): Promise<WithinEnd> {
    return within(tx, this.#statements, this.#settings, request, retentionMs, work)
  }

  /** Connections that are still in use then are not waited for: their work was given its time before. */
  async close(): Promise<void> {
    if (!this.#ownsPool) return
    let timer: NodeJS.Timeout | undefined
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LIMITS.poolEndMaxMs)
    })
    await Promise.race([this.#pool.end(), enough])
    clearTimeout(timer)
  }

  async #startSchema(): Promise<void> {
    const { schema, migrate: mode, statementMaxMs } = this.#settings
    // First only to see: the common case is answered at once, and must not hang where no server answers.
    const verified = await this.#connections.use((client) => isMigrated(client, schema), statementMaxMs)
    if (verified && mode === 'apply') return
    const maxMs = statementMaxMs + LIMITS.migrationWaitMaxMs
    await this.#connections.use((client) => migrate(client, { schema, mode }), maxMs)
  }
}
