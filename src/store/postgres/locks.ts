import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Queryable } from '../contract.ts'
import type { Acquisition, HeldLock, LockId, LockStore } from '../locks.ts'
import { classify, sqlState } from './classify.ts'
import type { Connections } from './connections.ts'
import { noteFence } from './fences.ts'
import { bind, flush, type Statement, statement } from './flush.ts'
import { ended, type Transaction, transactionOf } from './open-transaction.ts'
import { setLockWaitAlone } from './sql/session.ts'
import type { Statements } from './statements.ts'

/** Raised by refuse_former_holder(). */
const FORMER_HOLDER = 'OO002'

const WAIT = bind(statement(setLockWaitAlone(LIMITS.lockRowWaitMs)))

export class PostgresLocks implements LockStore {
  readonly #connections: Connections
  readonly #statements: Statements

  constructor(connections: Connections, statements: Statements) {
    this.#connections = connections
    this.#statements = statements
  }

  /** The insert decides about a resource that was never locked; else the row, if it is free; else it tells who has it. */
  async acquire(id: LockId, holder: string, ttlMs: number): Promise<Acquisition> {
    const { insertLock, takeLock, lookLock } = this.#statements
    const values = [id.account, id.resource, holder, `${ttlMs}`] as const
    const bounds = [
      WAIT,
      bind(insertLock, ...values),
      bind(takeLock, ...values),
      bind(lookLock, id.account, id.resource),
    ]
    try {
      const { rows } = await this.#connections.repeat(() =>
        this.#connections.use((client) => flush(client, bounds, this.#connections.named)),
      )
      const [token, heldBy, leftMs] = rows[3]![0]!
      if (heldBy === holder) return { got: 'lock', token: Number(token) }
      return { got: 'nothing', retryAfterMs: Math.max(1, Number(leftMs)) }
    } catch (error) {
      // It is free, and a transaction of its last holder is still open; or another is just getting it.
      if (classify(error) !== 'lock_wait') throw error
      return { got: 'nothing', retryAfterMs: LIMITS.lockPollMaxMs }
    }
  }

  extend(held: HeldLock, ttlMs: number): Promise<boolean> {
    return this.#write(this.#statements.extendLock, held, `${ttlMs}`)
  }

  release(held: HeldLock): Promise<boolean> {
    return this.#write(this.#statements.releaseLock, held)
  }

  async assertFence(tx: Queryable, held: HeldLock): Promise<void> {
    const transaction = await transactionOf(tx)
    const ask = (on: Queryable) => this.#ask(on, transaction, held)
    noteFence(transaction, ask)
    await ask(tx)
  }

  async #ask(tx: Queryable, { xid }: Transaction, held: HeldLock): Promise<void> {
    let rows: { readonly said: unknown }[]
    try {
      rows = (await tx.query(this.#statements.assertLock.text, [...valuesOf(held), xid])).rows
    } catch (error) {
      throw sqlState(error) === FORMER_HOLDER ? new OnlyonceError('fence_stale', { cause: error }) : error
    }
    if (rows[0]?.said != null) throw ended()
  }

  async #write(statement: Statement, held: HeldLock, ...more: readonly string[]): Promise<boolean> {
    const { rows } = await this.#connections.runBounded(bind(statement, ...valuesOf(held), ...more))
    return rows.at(-1)!.length === 1
  }
}

function valuesOf({ id, token, holder }: HeldLock): string[] {
  return [id.account, id.resource, `${token}`, holder]
}
