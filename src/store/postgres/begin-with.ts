import type { PoolClient, QueryConfig } from 'pg'
import { type Bound, forget, writeStatement } from './flush.ts'
import { type CommandComplete, type DataRow, type Submittable, type Wire, wireOf } from './wire.ts'

/** pg's own query object, which knows how to turn rows into results. */
export interface PgQuery extends Submittable {
  name?: string
  text?: string
  values?: readonly unknown[]
  queryMode?: string
  readonly _result: unknown
}

/**
 * Sends BEGIN (and the bounds on waiting) in the same flush as the first statement of the work: a round trip
 * less for every transaction. Behind the prefix it is the inner query and nothing else.
 */
export class BeginWith implements Submittable {
  readonly #prefix: readonly Bound[]
  readonly #named: boolean
  readonly #inner: PgQuery
  readonly #preparing: string[] = []
  #left: number

  constructor(prefix: readonly Bound[], named: boolean, inner: PgQuery) {
    this.#prefix = prefix
    this.#named = named
    this.#inner = inner
    this.#left = prefix.length
  }

  get callback(): Submittable['callback'] {
    return this.#inner.callback
  }
  set callback(callback: Submittable['callback']) {
    this.#inner.callback = callback
  }

  /** pg notes a statement as prepared when it sees ParseComplete: hide the name while that is the prefix's. */
  get name(): string | undefined {
    return this.#left === 0 ? this.#inner.name : undefined
  }
  get text(): string | undefined {
    return this.#inner.text
  }
  get _result(): unknown {
    return this.#inner._result
  }

  submit(wire: Wire): Error | null | undefined {
    wire.stream.cork()
    try {
      for (const bound of this.#prefix) {
        const name = writeStatement(wire, bound, this.#named)
        if (name !== null) this.#preparing.push(name)
      }
      return this.#inner.submit(wire)
    } finally {
      wire.stream.uncork()
    }
  }

  handleCommandComplete(message: CommandComplete, wire: Wire): void {
    if (this.#left > 0) this.#left -= 1
    else this.#inner.handleCommandComplete(message, wire)
  }

  handleDataRow(message: DataRow): void {
    if (this.#left === 0) this.#inner.handleDataRow(message)
  }

  handleError(error: Error, wire: Wire): void {
    if (this.#left > 0) {
      forget(wire, this.#preparing)
      if (this.#inner.name !== undefined) delete wire.submittedNamedStatements?.[this.#inner.name]
    }
    this.#inner.handleError(error, wire)
  }

  handleRowDescription(message: unknown): void {
    this.#inner.handleRowDescription(message)
  }
  handlePortalSuspended(wire: Wire): void {
    this.#inner.handlePortalSuspended(wire)
  }
  handleEmptyQuery(wire: Wire): void {
    this.#inner.handleEmptyQuery(wire)
  }
  handleCopyInResponse(wire: Wire): void {
    this.#inner.handleCopyInResponse(wire)
  }
  handleCopyData(message: unknown, wire: Wire): void {
    this.#inner.handleCopyData(message, wire)
  }
  handleReadyForQuery(wire: Wire): void {
    this.#inner.handleReadyForQuery(wire)
  }
}

/**
 * The query object for a first statement, or null when it cannot share a flush with BEGIN:
 * - texts that may hold several statements go over the simple protocol, which a preceding error would leave
 *   without an answer;
 * - what pg would refuse before sending has to be refused before BEGIN is on the wire.
 */
export function pipelinedQuery(
  client: PoolClient,
  config: string | QueryConfig,
  values: readonly unknown[] | undefined,
): PgQuery | null {
  const Query = (client.constructor as unknown as PgClientClass).Query
  if (Query === undefined) return null
  const query = new Query(config, values)
  if (typeof query.text !== 'string' || query.text === '') return null
  if (query.values !== undefined && !Array.isArray(query.values)) return null
  if (query.name) return namesAnotherText(wireOf(client), query.name, query.text) ? null : query
  if (query.values !== undefined && query.values.length > 0) return query
  const text = query.text.replace(/;\s*$/, '')
  if (text.includes(';')) return null
  query.text = text
  query.queryMode = 'extended'
  return query
}

interface PgClientClass {
  readonly Query?: new (config: unknown, values?: unknown) => PgQuery
}

function namesAnotherText(wire: Wire, name: string, text: string): boolean {
  const known = wire.parsedStatements?.[name] ?? wire.submittedNamedStatements?.[name]
  return known !== undefined && known !== text
}
