/**
 * What we use of pg below its public face: the connection of a client and the Submittable protocol, the same
 * that pg-cursor and pg-query-stream are built on. Stated here once, because @types/pg does not, and in no other
 * file: test/contract/pg-versions.test.ts runs the oldest and the newest pg that has all of it.
 */
import type { PoolClient, QueryConfig } from 'pg'

export interface Wire {
  readonly stream: {
    readonly writable: boolean
    cork(): void
    uncork(): void
    write(bytes: Buffer): boolean
    destroy(): void
  }
  sync(): void
  prependListener(event: 'readyForQuery', listen: (message: { readonly status: string }) => void): unknown
  readonly parsedStatements?: Record<string, string | undefined>
  readonly submittedNamedStatements?: Record<string, string | undefined>
}

export interface DataRow {
  readonly fields: readonly (string | null)[]
}

export interface CommandComplete {
  readonly text: string
}

export interface Submittable {
  callback: (error: Error | null | undefined, result?: unknown) => void
  submit(wire: Wire): Error | null | undefined
  handleRowDescription(message: unknown): void
  handleDataRow(message: DataRow): void
  handlePortalSuspended(wire: Wire): void
  handleEmptyQuery(wire: Wire): void
  handleCommandComplete(message: CommandComplete, wire: Wire): void
  handleCopyInResponse(wire: Wire): void
  handleCopyData(message: unknown, wire: Wire): void
  handleError(error: Error, wire: Wire): void
  handleReadyForQuery(wire: Wire): void
}

/** pg's own query object, which knows how to turn rows into results. */
export interface PgQuery extends Submittable {
  name?: string
  text?: string
  values?: readonly unknown[]
  queryMode?: string
  readonly _result: unknown
}

/** A client of pg, with its private parts. */
interface PgClient {
  readonly connection: Wire
  readonly constructor: { readonly Query: new (config: unknown, values?: unknown) => PgQuery }
  readonly readyForQuery: boolean
  readonly pipeline?: boolean
  readonly _queryable: boolean
  /** Since pg 8.21. */
  getTransactionStatus?(): string | null
}

function partsOf(client: PoolClient): PgClient {
  return client as unknown as PgClient
}

export function wireOf(client: PoolClient): Wire {
  return partsOf(client).connection
}

/** pg's query object for what the caller gave. Throws what pg throws when it cannot be one. */
export function pgQuery(
  client: PoolClient,
  config: string | QueryConfig,
  values: readonly unknown[] | undefined,
): PgQuery {
  return new (partsOf(client).constructor.Query)(config, values)
}

/** Whether pg would refuse the statement, because the session has another one under this name. */
export function namesAnotherText(client: PoolClient, name: string, text: string): boolean {
  const { parsedStatements, submittedNamedStatements } = wireOf(client)
  const known = parsedStatements?.[name] ?? submittedNamedStatements?.[name]
  return known !== undefined && known !== text
}

/** Ends a connection without a word; the only way to stop a statement whose answer will not come. */
export function destroy(client: PoolClient): void {
  wireOf(client).stream.destroy()
}

/** `I` outside of a transaction, `T` inside, `E` inside one that failed; as of the last answer. */
export function transactionStatus(client: PoolClient): string | null {
  const parts = partsOf(client)
  return parts.getTransactionStatus === undefined
    ? (statuses.get(client) ?? null)
    : parts.getTransactionStatus()
}

/** The status of what may be a client of pg; null where it is none, or where an answer is still to come. */
export function statusNow(client: object): string | null {
  const { getTransactionStatus, readyForQuery } = client as Partial<PgClient>
  if (typeof getTransactionStatus !== 'function' || readyForQuery !== true) return null
  return getTransactionStatus.call(client)
}

/** By client, for pg before 8.21, which forgets what the server says at the end of every answer. */
const statuses = new WeakMap<PoolClient, string>()

/** Lets the status of a client be known from now on. Newer versions of pg know it; older ones are asked once for a client. */
export async function watchStatus(client: PoolClient): Promise<void> {
  const { getTransactionStatus, readyForQuery } = partsOf(client)
  if (getTransactionStatus !== undefined || statuses.has(client) || !readyForQuery) return
  // Before pg's own listener, which calls back those who ask for the status.
  wireOf(client).prependListener('readyForQuery', ({ status }) => statuses.set(client, status))
  await client.query('')
}

/** Whether nothing is open and nothing is still to be answered: an error is told before the status after it. */
export function isIdle(client: PoolClient): boolean {
  return partsOf(client).readyForQuery && transactionStatus(client) === 'I'
}

/** Whether pg has noted the loss of its connection. It tells that once, and perhaps before anybody listened. */
export function isGone(client: PoolClient): boolean {
  return !partsOf(client)._queryable
}

/** Null when this client is one we can work with; otherwise what is wrong with it. */
export function unsupported(client: PoolClient): string | null {
  const { connection, constructor: Client, pipeline, readyForQuery, _queryable } = partsOf(client)
  if (connection?.stream === undefined) return 'pg-native is not supported: use the JavaScript client of pg.'
  const known =
    typeof Client.Query?.prototype?.submit === 'function' &&
    typeof connection.prependListener === 'function' &&
    typeof connection.stream.cork === 'function' &&
    typeof readyForQuery === 'boolean' &&
    typeof _queryable === 'boolean'
  if (!known) return 'this version of pg is not supported: install pg 8.16 or a later 8.'
  if (pipeline === true) {
    return 'a pool with pipeline: true is not supported: onlyonce pipelines what may be pipelined by itself.'
  }
  return null
}
