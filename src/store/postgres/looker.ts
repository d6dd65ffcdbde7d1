import { LIMITS } from '../../limits.ts'
import type { RecordId } from '../../record/index.ts'
import type { Seen } from '../contract.ts'
import type { Connections } from './connections.ts'
import { bind, type Row, type Statement, statement } from './flush.ts'
import { arrayLiteral, readRecord } from './rows.ts'
import { lookMany } from './sql/look.ts'

interface Asked {
  readonly id: RecordId
  readonly resolve: (seen: Seen | null) => void
  readonly reject: (error: unknown) => void
}

/**
 * Looks records up in micro-batches. Alone, a request waits for nothing but its own lookup. Under load,
 * callers that were looked up wait for a connection anyway, so the next lookup is put off until few of them
 * are left (or for some milliseconds, so that a replay, which needs no connection, is not held up): what was
 * asked meanwhile goes into one statement.
 */
export class Looker {
  readonly #connections: Connections
  readonly #statement: Statement
  /** With this many callers ready to run, no lookup is urgent. */
  readonly #enough: number
  #asked: Asked[] = []
  #under_way = 0
  #planned: 'no' | 'now' | 'later' = 'no'
  #timer: NodeJS.Timeout | undefined

  constructor(connections: Connections) {
    this.#connections = connections
    this.#statement = statement(lookMany(connections.settings.schema))
    this.#enough = Math.ceil(connections.size / 2)
    connections.slots.onShorter = () => {
      if (this.#planned === 'later') this.#plan()
    }
  }

  look(id: RecordId): Promise<Seen | null> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ id, resolve, reject })
      this.#plan()
    })
  }

  #plan(): void {
    if (this.#planned === 'now' || this.#asked.length === 0 || this.#under_way >= BATCHES_MAX) return
    const urgent =
      this.#connections.slots.waiting < this.#enough || this.#asked.length >= LIMITS.look_batch_max
    if (urgent) {
      clearTimeout(this.#timer)
      this.#planned = 'now'
      setImmediate(() => this.#send())
    } else if (this.#planned === 'no') {
      this.#planned = 'later'
      this.#timer = setTimeout(() => this.#send(), LIMITS.look_delay_max_ms)
    }
  }

  #send(): void {
    this.#planned = 'no'
    const batch = this.#asked.splice(0, LIMITS.look_batch_max)
    this.#under_way += 1
    this.#ask(batch).finally(() => {
      this.#under_way -= 1
      this.#plan()
    })
    this.#plan()
  }

  async #ask(batch: readonly Asked[]): Promise<void> {
    try {
      const column = (name: keyof RecordId) => arrayLiteral(batch.map(({ id }) => id[name]))
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
function answer({ resolve, reject }: Asked, row: Row | undefined): void {
  try {
    resolve(row === undefined ? null : readRecord(row))
  } catch (error) {
    reject(error)
  }
}

/** One may be on its way while the answer to another is read. */
const BATCHES_MAX = 2
