import { OnlyonceError } from '../../core/errors.ts'
import { LIMITS } from '../../core/limits.ts'
import type { RecordId } from '../../record/index.ts'
import type { Connections } from './connections.ts'
import { bind, flush, type Row, type Statement, statement } from './flush.ts'
import { type Asked, Gather } from './gather.ts'
import type { Value } from './messages.ts'
import { setGroupBounds } from './sql/group.ts'

const SET_GROUP_BOUNDS = bind(statement(setGroupBounds(LIMITS.lockWaitGroupMs)))

/** A write that many may do at once: how one is done alone, and how many are done in one statement. */
export interface GroupWrite<Item, Answer> {
  readonly statement: Statement
  readonly idOf: (item: Item) => RecordId
  /** One array for each parameter of the statement. */
  readonly valuesOf: (items: readonly Item[]) => readonly Value[]
  /** The statement's first column is the attempt id of what was done; the row is null for what was not. */
  readonly attemptOf: (item: Item) => string
  readonly answerOf: (row: Row | null) => Answer
  readonly alone: (item: Item) => Promise<Answer>
}

/** One write of one caller, with its types behind it. */
interface Part {
  readonly write: GroupWrite<unknown, unknown>
  readonly item: unknown
  /** Where it stands in the order in which keys are taken: any will do that is the same in all processes. */
  readonly place: string
}

/**
 * Group commit: what several callers write at the same time is one commit, with one statement for each kind of
 * write.
 *
 * One blocked key cannot stall the others. In a group no member waits for a lock longer than some milliseconds; when
 * that is not enough, or anything else goes wrong, the group is rolled back and each goes on alone, where a wait
 * or an error is its own. Keys are taken in order, so that two groups do not wait for each other in a circle.
 */
export class Group {
  readonly #connections: Connections
  readonly #gather: Gather<Part, unknown>

  constructor(connections: Connections) {
    this.#connections = connections
    this.#gather = new Gather<Part, unknown>({
      batchMax: LIMITS.groupMax,
      // With two, groups were half as large and the ratio below was 0.03 lower.
      underWayMax: 1,
      send: (batch) => this.#send(batch),
    })
  }

  run<Item, Answer>(write: GroupWrite<Item, Answer>, item: Item): Promise<Answer> {
    const { account, operation, key } = write.idOf(item)
    const part = {
      write: write as GroupWrite<unknown, unknown>,
      item,
      place: `${account}\0${operation}\0${key}`,
    }
    return this.#gather.ask(part) as Promise<Answer>
  }

  async #send(batch: readonly Asked<Part, unknown>[]): Promise<void> {
    if (batch.length === 1) return await runAlone(batch[0]!)
    try {
      await this.#runTogether(batch)
    } catch (error) {
      // Without an answer it is not known whether it was committed: each has to ask again under its own attempt id.
      const unanswered = error instanceof OnlyonceError && error.code !== 'statement_not_prepared'
      if (unanswered) for (const { reject } of batch) reject(error)
      else await Promise.all(batch.map(runAlone))
    }
  }

  async #runTogether(batch: readonly Asked<Part, unknown>[]): Promise<void> {
    const sorted = [...batch].sort((a, b) => (a.item.place < b.item.place ? -1 : 1))
    const groups = [...byWrite(sorted)]
    const bounds = groups.map(([{ statement, valuesOf }, asked]) =>
      bind(statement, ...valuesOf(asked.map(({ item }) => item.item))),
    )
    const { named, settings } = this.#connections
    // Many wait for this answer; what takes longer than a group can is asked again over another connection.
    const maxMs = Math.min(settings.statementMaxMs, LIMITS.groupMaxMs)
    const { rows } = await this.#connections.use(
      (client) => flush(client, [SET_GROUP_BOUNDS, ...bounds], named),
      maxMs,
    )
    groups.forEach(([{ attemptOf, answerOf }, asked], i) => {
      const done = new Map(rows[i + 1]!.map((row) => [row[0], row]))
      for (const { item, resolve } of asked) resolve(answerOf(done.get(attemptOf(item.item)) ?? null))
    })
  }
}

async function runAlone({ item, resolve, reject }: Asked<Part, unknown>): Promise<void> {
  try {
    resolve(await item.write.alone(item.item))
  } catch (error) {
    reject(error)
  }
}

function byWrite(batch: readonly Asked<Part, unknown>[]): Map<Part['write'], Asked<Part, unknown>[]> {
  const groups = new Map<Part['write'], Asked<Part, unknown>[]>()
  for (const asked of batch) {
    const group = groups.get(asked.item.write)
    if (group === undefined) groups.set(asked.item.write, [asked])
    else group.push(asked)
  }
  return groups
}
