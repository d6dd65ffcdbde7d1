import { LIMITS } from '../../core/limits.ts'
import type { Queryable } from '../contract.ts'
import { withoutPrefix, withPrefix } from '../event-id.ts'
import type {
  EventDraft,
  JobDraft,
  JobEnd,
  Lag,
  ListedParked,
  Message,
  OutboxStore,
  ParkedRequest,
  RoundEnd,
  Taken,
  TakenJobs,
} from '../outbox.ts'
import { alone } from './busy.ts'
import type { Connections } from './connections.ts'
import { carryFences } from './fences.ts'
import { bind } from './flush.ts'
import { ended, type Transaction, transactionOf } from './open-transaction.ts'
import { endJobs, takeJobs } from './outbox-jobs.ts'
import { done, take } from './outbox-lanes.ts'
import { BY_INDEX, type OutboxStatements, outboxStatements, SOON } from './outbox-statements.ts'
import { arrayLiteral } from './rows.ts'
import { behindSavepoint } from './savepoint.ts'
import { plainText } from './type-parsers.ts'

/** Events, jobs and messages in PostgreSQL. */
export class PostgresOutbox implements OutboxStore {
  readonly #connections: Connections
  readonly #statements: OutboxStatements

  constructor(connections: Connections) {
    this.#connections = connections
    this.#statements = outboxStatements(connections.settings.schema)
  }

  /** One event is the common case, and its statement is planned in a fraction of the time of that for many. */
  async emit(tx: Queryable, account: string, events: readonly EventDraft[]): Promise<void> {
    const [first] = events
    if (first === undefined) return
    const { xid } = await transactionOf(tx)
    const { rows } = await tx.query(...this.#insertOf(account, events, first, xid))
    if (rows.length === 0) throw ended()
  }

  #insertOf(
    account: string,
    events: readonly EventDraft[],
    first: EventDraft,
    xid: string | null,
  ): [text: string, values: (string | null)[]] {
    const { insertEvent, insertEventInOrder, insertEvents } = this.#statements
    if (events.length > 1) return [insertEvents.text, [...manyValues(account, events), xid]]
    const { id, type, payload, aggregate } = first
    const values = [account, withoutPrefix(id), `${laneOf(account, first)}`, type, payload, xid]
    return aggregate === null ? [insertEvent.text, values] : [insertEventInOrder.text, [...values, aggregate]]
  }

  async stage(tx: Queryable, account: string, jobs: readonly JobDraft[]): Promise<readonly string[]> {
    if (jobs.length === 0) return []
    const { xid } = await transactionOf(tx)
    const { rows } = await tx.query(this.#statements.insertJobs.text, [
      account,
      arrayLiteral(jobs.map(({ id }) => withoutPrefix(id))),
      arrayLiteral(jobs.map(({ job }) => job)),
      arrayLiteral(jobs.map(({ key }) => key ?? '')),
      arrayLiteral(jobs.map(({ payload }) => payload)),
      arrayLiteral(jobs.map(({ runAfterMs }) => `${runAfterMs}`)),
      xid,
    ])
    if (rows[0]?.id === null) throw ended()
    // Read only where it is needed: the caller's client may read an id in its own way.
    if (rows.length === jobs.length) return jobs.map(({ id }) => id)
    return rows.map(({ id }) => withPrefix('job', plainText(id)))
  }

  async inbox<T>(tx: Queryable, message: Message, work: () => Promise<T>): Promise<{ value: T } | null> {
    const { transactionMaxMs: unawaitedMaxMs } = this.#connections.settings
    return await alone(tx, { shares: true, unawaitedMaxMs }, (transaction, enter) =>
      carryFences(tx, transaction, () => this.#receive(tx, transaction, message, () => enter(work))),
    )
  }

  async #receive<T>(
    tx: Queryable,
    transaction: Transaction,
    { account, source, messageId }: Message,
    work: () => Promise<T>,
  ): Promise<{ value: T } | null> {
    const values = [account, source, messageId, transaction.xid]
    return await behindSavepoint(tx, transaction, async (leave) => {
      const { rows } = await tx.query(this.#statements.insertMessage.text, values)
      const said = plainText(rows[0].said)
      if (said === 'ended') leave()
      return said === 'seen' ? null : { value: await work() }
    })
  }

  async register(destinations: readonly string[]): Promise<void> {
    await this.#connections.run(bind(this.#statements.registerDestinations, arrayLiteral(destinations)))
  }

  async forget(destination: string): Promise<void> {
    const { forgetCursors, forgetHeld } = this.#statements
    await this.#connections.run(bind(forgetCursors, destination), bind(forgetHeld, destination))
  }

  async route(): Promise<{ count: number; more: boolean }> {
    const sizeMax = LIMITS.outboxBatchMax
    const { rows } = await this.#connections.run(...SOON, bind(this.#statements.makeBatches, `${sizeMax}`))
    const sizes = rows[2]!.map(([size]) => Number(size))
    const count = sizes.reduce((sum, size) => sum + size, 0)
    return { count, more: sizes.some((size) => size >= sizeMax) }
  }

  take(destination: string, eventsMax: number, leaseMs: number): Promise<Taken | null> {
    return take(this.#connections, this.#statements, destination, eventsMax, leaseMs)
  }

  done(end: RoundEnd): Promise<readonly number[]> {
    return done(this.#connections, this.#statements, end)
  }

  async lag(): Promise<readonly Lag[]> {
    const { rows } = await this.#connections.run(bind(this.#statements.readLag))
    return rows[0]!.map(([destination, count, ageMs, parked]) => ({
      destination: destination!,
      count: Number(count),
      oldestAgeMs: Math.max(0, Number(ageMs ?? 0)),
      parked: Number(parked),
    }))
  }

  takeJobs(jobs: readonly string[], countMax: number, leaseMs: number): Promise<TakenJobs> {
    return takeJobs(this.#connections, this.#statements, jobs, countMax, leaseMs)
  }

  endJobs(claimId: string, ends: readonly JobEnd[]): Promise<void> {
    return endJobs(this.#connections, this.#statements, claimId, ends)
  }

  async parked({ limit, after }: ParkedRequest): Promise<readonly ListedParked[]> {
    const place =
      after === null ? [null, null, null] : [after.atUs, withoutPrefix(after.id), after.destination ?? '']
    const { rows } = await this.#connections.run(bind(this.#statements.readParked, `${limit}`, ...place))
    return rows[0]!.map(([account, id, destination, name, code, message, atUs]) => ({
      parked: {
        account: account!,
        id: withPrefix(destination === null ? 'job' : 'evt', id!),
        destination: destination ?? null,
        name: name!,
        failure: { code: code ?? '', message: message ?? '' },
      },
      atUs: atUs!,
    }))
  }

  async retryParked(account: string, id: string): Promise<boolean> {
    const { retryHeld, retryJob } = this.#statements
    const retry = id.startsWith('job') ? retryJob : retryHeld
    const { rows } = await this.#connections.run(bind(retry, account, withoutPrefix(id)))
    return rows[0]!.length > 0
  }

  async clean(retention: { readonly deliveredMs: number; readonly inboxMs: number }): Promise<boolean> {
    const { deleteBatches, deleteMessages, deleteJobs } = this.#statements
    const [batchesMax, rowsMax] = [LIMITS.cleanBatchesMax, LIMITS.cleanRowsMax]
    const deliveredMs = `${retention.deliveredMs}`
    const { rows } = await this.#connections.run(
      BY_INDEX,
      bind(deleteBatches, deliveredMs, `${batchesMax}`),
      bind(deleteJobs, deliveredMs, `${rowsMax}`),
      bind(deleteMessages, `${retention.inboxMs}`, `${rowsMax}`),
    )
    const [batches, jobs, messages] = rows.slice(1).map((counted) => Number(counted[0]![0]))
    return batches! >= batchesMax || jobs! >= rowsMax || messages! >= rowsMax
  }
}

/** The values of `insertEvents`. Who is behind whom is counted here: windows over the rows cost the server more. */
function manyValues(account: string, events: readonly EventDraft[]): string[] {
  const counts = new Map<string, number>()
  const behind = [...events].reverse().map(({ aggregate }) => {
    const count = aggregate === null ? 0 : (counts.get(aggregate) ?? 0)
    if (aggregate !== null) counts.set(aggregate, count + 1)
    return `${count}`
  })
  const names = [...counts.keys()].sort()
  return [
    account,
    arrayLiteral(events.map(({ id }) => withoutPrefix(id))),
    arrayLiteral(events.map((event) => `${laneOf(account, event)}`)),
    arrayLiteral(events.map(({ type }) => type)),
    arrayLiteral(events.map(({ payload }) => payload)),
    arrayLiteral(events.map(({ aggregate }) => aggregate ?? '')),
    arrayLiteral(behind.reverse()),
    arrayLiteral(names),
    arrayLiteral(names.map((name) => `${counts.get(name)}`)),
  ]
}

/** The same in every process and for ever: events of one aggregate must never be in two lanes. */
function laneOf(account: string, { aggregate, id }: EventDraft): number {
  let hash = 0x811c9dc5
  const text = `${account}\0${aggregate ?? id}`
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  // The low bits of FNV-1a are its worst.
  return ((hash >>> 16) ^ (hash >>> 4)) & (LANES - 1)
}

/** As many as migration 0004 has made. */
const LANES = 16
