import { createHash } from 'node:crypto'
import type { PoolClient } from 'pg'
import { acrossCopies } from '../../core/copies.ts'
import { isOfClass } from '../../core/thrown.ts'
import { classify } from './classify.ts'
import {
  closeMessage,
  encode,
  type Message,
  parseMessage,
  runMessage,
  SYNC_MESSAGE,
  type Value,
} from './messages.ts'
import type { CommandComplete, DataRow, Submittable, Wire } from './wire.ts'

/** A statement of ours. Named by its text, so that a session prepares it once. */
export interface Statement {
  readonly text: string
  readonly name: string
  /** How it is run without values; made once, when it is first needed. */
  run?: Message
}

export interface Bound {
  readonly statement: Statement
  readonly values: readonly Value[]
}

export type Row = readonly (string | null)[]

export interface FlushResult {
  /** Rows by statement, as text: we know our own columns and need no description of them. */
  readonly rows: readonly (readonly Row[])[]
}

export function statement(text: string): Statement {
  return { text, name: `onlyonce_${createHash('sha256').update(text).digest('hex').slice(0, 16)}` }
}

export function bind(statement: Statement, ...values: readonly Value[]): Bound {
  return { statement, values }
}

/**
 * Which of our statements a session has prepared. Held here and not in pg's own table, because pg notes one
 * statement for each query, and a flush has several.
 */
const prepared = acrossCopies('prepared_statements', () => new WeakMap<Wire, Set<string>>())

/** The messages of statements, in order, without a Sync; `preparing` hears the names that they prepare. */
export function messagesOf(
  wire: Wire,
  bounds: readonly Bound[],
  named: boolean,
  preparing: string[],
): Message[] {
  const known = preparedBy(wire)
  const messages: Message[] = []
  for (const { statement, values } of bounds) {
    if (!named) messages.push(parseMessage('', statement.text))
    else if (!known.has(statement.name)) {
      // Closing first: an earlier flush may have failed after it prepared this name, and that is not known.
      messages.push(closeMessage(statement.name), parseMessage(statement.name, statement.text))
      known.add(statement.name)
      preparing.push(statement.name)
    }
    messages.push(named ? runNamed(statement, values) : runMessage('', values))
  }
  return messages
}

/** BEGIN, COMMIT and the like are the same bytes every time. */
function runNamed(statement: Statement, values: readonly Value[]): Message {
  if (values.length > 0) return runMessage(statement.name, values)
  statement.run ??= runMessage(statement.name, values)
  return statement.run
}

function preparedBy(wire: Wire): Set<string> {
  const known = prepared.get(wire)
  if (known !== undefined) return known
  const fresh = new Set<string>()
  prepared.set(wire, fresh)
  return fresh
}

/** After an error it is not known which of these are prepared; when the session lost its statements, none is. */
export function forget(wire: Wire, names: readonly string[], error: Error): void {
  if (classify(error) === 'not_prepared') prepared.delete(wire)
  const known = prepared.get(wire)
  for (const name of names) known?.delete(name)
}

/**
 * Several statements in one flush, with one Sync behind the last. After an error the server skips the rest,
 * COMMIT included, so a failed flush has committed nothing that it was not told to before.
 */
export class Flush implements Submittable {
  callback: Submittable['callback'] = () => {}
  readonly #bounds: readonly Bound[]
  readonly #named: boolean
  readonly #guard: () => Error | null
  readonly #preparing: string[] = []
  readonly #rows: Row[][]
  #done = 0
  #tag = ''

  /** `guard` is asked in the moment of sending; with an error from it, nothing is sent. */
  constructor(bounds: readonly Bound[], named: boolean, guard: () => Error | null = () => null) {
    this.#bounds = bounds
    this.#named = named
    this.#guard = guard
    this.#rows = bounds.map(() => [])
  }

  /** How many statements the server has reported as done. */
  get done(): number {
    return this.#done
  }

  /** The command tag of the last statement that is done. */
  get tag(): string {
    return this.#tag
  }

  submit(wire: Wire): Error | null {
    return orGiveUp(wire, () => {
      const refusal = this.#guard()
      if (refusal !== null) return refusal
      const messages = messagesOf(wire, this.#bounds, this.#named, this.#preparing)
      messages.push(SYNC_MESSAGE)
      send(wire, messages)
      return null
    })
  }

  handleDataRow({ fields }: DataRow): void {
    this.#rows[this.#done]?.push(fields)
  }

  handleCommandComplete({ text }: CommandComplete): void {
    this.#tag = text
    this.#done += 1
  }

  handleError(error: Error, wire: Wire): void {
    forget(wire, this.#preparing, error)
    this.callback(error)
  }

  handleReadyForQuery(): void {
    const result: FlushResult = { rows: this.#rows }
    this.callback(null, result)
  }

  handleRowDescription(): void {}
  handlePortalSuspended(): void {}
  handleEmptyQuery(): void {}
  handleCopyInResponse(): void {}
  handleCopyData(): void {}
}

/**
 * pg calls submit() from the callback of its socket where another query was before it: an error thrown there would end the
 * process, and pg would wait for an answer for ever. It is not known how much was sent by then, so the connection is ended.
 */
export function orGiveUp<T>(wire: Wire, submit: () => T): T | Error {
  try {
    return submit()
  } catch (error) {
    wire.stream.destroy()
    return isOfClass(error, Error) ? error : new Error('A query could not be sent.', { cause: error })
  }
}

/** A stream that is closed already is reported by pg to the caller that waits for an answer on it. */
export function send(wire: Wire, messages: readonly Message[]): void {
  if (wire.stream.writable) wire.stream.write(encode(messages))
}

/** Sends statements in one flush and waits for their rows. */
export function flush(
  client: PoolClient,
  bounds: readonly Bound[],
  named: boolean,
  guard?: () => Error | null,
): Promise<FlushResult> {
  return new Promise((resolve, reject) => {
    const batch = new Flush(bounds, named, guard)
    batch.callback = (error, result) => (error ? reject(error) : resolve(result as FlushResult))
    submit(client, batch)
  })
}

export function submit(client: PoolClient, query: Submittable): void {
  ;(client as unknown as { query(query: Submittable): void }).query(query)
}
