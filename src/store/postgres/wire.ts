/**
 * What we use of pg below its public face: the connection of a client and the Submittable protocol, the same
 * that pg-cursor and pg-query-stream are built on. Stated here once, because @types/pg does not.
 */
import type { PoolClient } from 'pg'

export interface Wire {
  readonly stream: {
    readonly writable: boolean
    cork(): void
    uncork(): void
    write(bytes: Buffer): boolean
    destroy(): void
  }
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

export function wireOf(client: PoolClient): Wire {
  return (client as unknown as { connection: Wire }).connection
}

/** Ends a connection without a word; the only way to stop a statement whose answer will not come. */
export function destroy(client: PoolClient): void {
  wireOf(client).stream.destroy()
}

/** `I` outside of a transaction, `T` inside, `E` inside one that failed; as of the last answer. */
export function transactionStatus(client: PoolClient): string | null {
  return (client as unknown as { getTransactionStatus(): string | null }).getTransactionStatus()
}

/** Whether nothing is open and nothing is still to be answered: an error is told before the status after it. */
export function isIdle(client: PoolClient): boolean {
  return (client as unknown as { readyForQuery: boolean }).readyForQuery && transactionStatus(client) === 'I'
}

/** Whether pg has noted the loss of its connection. It tells that once, and perhaps before anybody listened. */
export function isGone(client: PoolClient): boolean {
  return (client as unknown as { _queryable?: boolean })._queryable === false
}

/** Null when this client is one we can work with; otherwise what is wrong with it. */
export function unsupported(client: PoolClient): string | null {
  if (wireOf(client)?.stream === undefined)
    return 'pg-native is not supported: use the JavaScript client of pg.'
  if ((client as unknown as { pipeline?: boolean }).pipeline === true) {
    return 'a pool with pipeline: true is not supported: onlyonce pipelines what may be pipelined by itself.'
  }
  return null
}
