import { LIMITS } from '../../core/limits.ts'
import type { RecordId } from '../../record/index.ts'
import type { Seen } from '../contract.ts'
import type { Connections } from './connections.ts'
import { bind, type Row, type Statement, statement } from './flush.ts'
import { type Asked, Gather } from './gather.ts'
import { arrayLiteral, readRecord } from './rows.ts'
import { lookMany } from './sql/look.ts'

/**
 * Looks records up in micro-batches. Alone, a request waits for nothing but its own lookup. Under load,
 * callers that were looked up wait for a connection anyway, so the next lookup is put off until few of them
 * are left (or for some milliseconds, so that a replay, which needs no connection, is not held up): what was
 * asked meanwhile goes into one statement.
 */
export class Looker {
  readonly #connections: Connections
  readonly #statement: Statement
  readonly #gather: Gather<RecordId, Seen | null>

  constructor(connections: Connections) {
    this.#connections = connections
    this.#statement = statement(lookMany(connections.settings.schema))
    // With this many callers ready to run, no lookup is urgent.
    const enough = Math.ceil(connections.size / 2)
    this.#gather = new Gather({
      batchMax: LIMITS.lookBatchMax,
      // One may be on its way while the answer to another is read.
      underWayMax: 2,
      send: (batch) => this.#ask(batch),
      mayWait: () => connections.slots.waiting >= enough,
    })
    connections.slots.onShorter = () => this.#gather.reconsider()
  }

  look(id: RecordId): Promise<Seen | null> {
    return this.#gather.ask(id)
  }

  async #ask(batch: readonly Asked<RecordId, Seen | null>[]): Promise<void> {
    try {
      const column = (name: keyof RecordId) => arrayLiteral(batch.map(({ item }) => item[name]))
      const { rows } = await this.#connections.run(
        bind(this.#statement, column('account'), column('operation'), column('key')),
      )
      const found: Row[] = []
      for (const [position, ...row] of rows[0]!) found[Number(position) - 1] = row
      batch.forEach((asked, i) => {
        answer(asked, found[i])
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }
}

/** A row that cannot be read is the trouble of those who asked for it, not of the whole batch. */
function answer({ resolve, reject }: Asked<RecordId, Seen | null>, row: Row | undefined): void {
  try {
    resolve(row === undefined ? null : readRecord(row))
  } catch (error) {
    reject(error)
  }
}
