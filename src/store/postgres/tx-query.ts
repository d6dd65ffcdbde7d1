import type { PoolClient } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { type Bound, forget, messagesOf, orGiveUp, send } from './flush.ts'
import {
  type CommandComplete,
  type DataRow,
  namesAnotherText,
  type PgQuery,
  type Submittable,
  type Wire,
} from './wire.ts'

/** What may stand before a statement and says nothing. */
export const COMMENTS = String.raw`(?:\s|--[^\n]*\n|/\*[\s\S]*?\*/)*`

/** What a query of a transaction asks of the transaction it belongs to. */
export interface Gate {
  /** The statements that have to go before the query; an error when it may not be sent at all. */
  open(): readonly Bound[] | Error
  /** Called when what had to go before is done. */
  opened(): void
  /** Called with the tag of every statement that is done. */
  done(tag: string): void
}

/**
 * A query inside a transaction. It asks the gate in the very moment in which its bytes are written: no query
 * gets past the end of its transaction, however late its turn comes. What the gate gives it to send first
 * (BEGIN, and the bounds on waiting) travels in the same flush, which saves a round trip.
 */
export class TxQuery implements Submittable {
  readonly #gate: Gate
  readonly #named: boolean
  readonly #inner: PgQuery
  readonly #preparing: string[] = []
  readonly query_timeout: number | undefined
  #left = 0
  #copies = false

  constructor(gate: Gate, named: boolean, inner: PgQuery, queryTimeout: number | undefined) {
    this.#gate = gate
    this.#named = named
    this.#inner = inner
    this.query_timeout = queryTimeout
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
    return orGiveUp(wire, () => this.#submit(wire))
  }

  #submit(wire: Wire): Error | null | undefined {
    const prefix = this.#gate.open()
    if (prefix instanceof Error) return prefix
    if (prefix.length === 0) return this.#inner.submit(wire)
    this.#left = prefix.length
    wire.stream.cork()
    try {
      send(wire, messagesOf(wire, prefix, this.#named, this.#preparing))
      return this.#inner.submit(wire)
    } finally {
      wire.stream.uncork()
    }
  }

  handleCommandComplete(message: CommandComplete, wire: Wire): void {
    if (this.#left > 0) {
      this.#left -= 1
      if (this.#left === 0) this.#gate.opened()
      return
    }
    this.#gate.done(message.text)
    this.#inner.handleCommandComplete(message, wire)
  }

  handleDataRow(message: DataRow): void {
    if (this.#left === 0) this.#inner.handleDataRow(message)
  }

  handleError(error: Error, wire: Wire): void {
    // What the server says then is how a cancelled statement ends too: its author is told what cannot be done here.
    if (this.#copies) {
      this.#inner.handleError(new OnlyonceError('option_invalid', { detail: NO_COPY, cause: error }), wire)
      return
    }
    if (this.#left > 0) {
      forget(wire, this.#preparing, error)
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
  /** pg refuses to send rows, and the server then wants a new Sync: it has ignored the one that came with the statement. */
  handleCopyInResponse(wire: Wire): void {
    this.#copies = true
    this.#inner.handleCopyInResponse(wire)
    if (isExtended(this.#inner)) wire.sync()
  }
  handleCopyData(message: unknown, wire: Wire): void {
    this.#inner.handleCopyData(message, wire)
  }
  handleReadyForQuery(wire: Wire): void {
    this.#inner.handleReadyForQuery(wire)
  }
}

export const NO_COPY =
  'Cursors and COPY from or to a stream do not work through tx; use once.within with a client of your own, or send the rows as arrays, as parameters.'

/** As pg decides it. */
function isExtended({ name, values, queryMode }: PgQuery): boolean {
  return Boolean(name) || (values?.length ?? 0) > 0 || queryMode === 'extended'
}

/**
 * Makes a query fit to share a flush with BEGIN, and says whether it is:
 * - texts that may hold several statements go over the simple protocol, which a preceding error would leave
 *   without an answer;
 * - COPY changes the protocol, and the server would never see our Sync;
 * - what pg would refuse before sending has to be refused before BEGIN is on the wire.
 */
export function mayFollowBegin(client: PoolClient, query: PgQuery): boolean {
  if (typeof query.text !== 'string' || COPIES.test(query.text)) return false
  if (query.values !== undefined && !Array.isArray(query.values)) return false
  if (query.name) return !namesAnotherText(client, query.name, query.text)
  if (query.values !== undefined && query.values.length > 0) return true
  const text = query.text.replace(/;\s*$/, '')
  if (text.includes(';')) return false
  query.text = text
  query.queryMode = 'extended'
  return true
}

const COPIES = new RegExp(`^${COMMENTS}(?:$|copy\\b)`, 'i')
