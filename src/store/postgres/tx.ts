import type { QueryConfig, QueryResult, QueryResultRow } from 'pg'
import { OnlyonceError } from '../../core/errors.ts'
import { isOfClass } from '../../core/thrown.ts'
import { KEEP_OPEN, type KeepsOpen, OpenCalls } from '../keep-open.ts'
import { leavesDoubt } from './classify.ts'
import type { Connections } from './connections.ts'
import { type Bound, flush, submit } from './flush.ts'
import type { Habits } from './habits.ts'
import type { Link } from './link.ts'
import { COMMENTS, type Gate, mayFollowBegin, NO_COPY, TxQuery } from './tx-query.ts'
import { asking } from './whose.ts'
import { type PgQuery, pgQuery, transactionStatus } from './wire.ts'

/** What the work of a transaction is given: a client that knows one thing, to run queries. */
export interface PostgresTx {
  query<R extends QueryResultRow = QueryResultRow>(
    text: string | QueryConfig,
    values?: readonly unknown[],
  ): Promise<QueryResult<R>>
}

const TO_SAVEPOINT = String.raw`(?:\s+(?:work|transaction))?\s+to\b`
/** Statements that would end the transaction, or pretend to begin it. ROLLBACK TO a savepoint is fine. */
const CONTROLS = new RegExp(
  `^${COMMENTS}(?:commit|end|abort|begin|start\\s+transaction|prepare\\s+transaction|rollback(?!${TO_SAVEPOINT}))\\b`,
  'i',
)

/** One statement that goes back to a savepoint, and nothing behind it. */
const ONE_TO_SAVEPOINT = new RegExp(`^${COMMENTS}rollback${TO_SAVEPOINT}[^;]*;?\\s*$`, 'i')
const SOME_TO_SAVEPOINT = new RegExp(`\\brollback${TO_SAVEPOINT}`, 'i')
/**
 * Words that may end a transaction, wherever in a text they stand. COMMIT of an aborted one is answered with ROLLBACK too. END is also the last word
 * of CASE, so it counts only where a statement begins, or where a comment may hide that one does.
 */
const MAY_END = new RegExp(
  `\\b(?:commit|abort|prepare\\s+transaction|rollback(?!${TO_SAVEPOINT}))\\b|(?:^|;)\\s*end\\b|(?:/\\*|--)[^]*\\bend\\b`,
  'i',
)

/** 'text', "name", or $tag$ text $tag$. A dollar inside of a name begins nothing. */
const QUOTED =
  /'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|(?<![\w$\u0080-\uffff])\$((?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?)\$[\s\S]*?\$\1\$/g

/**
 * A transaction that begins with its first statement. BEGIN travels in the same flush as that statement, so
 * that a transaction costs no round trip of its own.
 */
export class Tx implements PostgresTx, KeepsOpen {
  readonly #link: Link
  readonly #connections: Connections
  readonly #begin: Bound
  readonly #first: () => readonly Bound[]
  /** BEGIN is on its way. */
  #begun = false
  /** BEGIN was answered. */
  #opened = false
  #over = false
  /** The last query that was asked for: the next one goes behind it, as pg wants its callers to do. */
  #tail: Promise<unknown> = Promise.resolve()
  #asked = 0
  #answered = 0
  readonly #calls = new OpenCalls()
  /** The last error that no savepoint has undone. With one the transaction is aborted, also where code swallows it. */
  failure: unknown = null
  /** The function got a statement through that ended its transaction: what it did may stand without a record. */
  endedInside = false
  /** A text that may hold such a statement is on its way; if its answer is lost, that is not known. */
  #mayEnd = false

  /** `first` gives what has to be asked before anything else. */
  constructor(link: Link, connections: Connections, begin: Bound, first: () => readonly Bound[]) {
    this.#link = link
    this.#connections = connections
    this.#begin = begin
    this.#first = first
  }

  /** The statements that have to go before the next one; the code that takes them has to send them. */
  takeUnsent(): readonly Bound[] {
    if (this.#begun) return []
    this.#begun = true
    return [this.#begin, ...this.#connections.prefix(this.#link.client!), ...this.#first()]
  }

  get begun(): boolean {
    return this.#begun
  }

  markOpened(): void {
    this.#opened = true
  }

  /**
   * Asked in the moment in which something is sent, when the server's last word on the transaction is known:
   * one that was open and is not any more was ended by the function.
   */
  wasEndedInside(): boolean {
    if (this.#opened && transactionStatus(this.#link.client!) === 'I') this.endedInside = true
    return this.endedInside
  }

  /** The connection is gone, and with it perhaps the answer to a text that ended the transaction. */
  lostConnection(): void {
    if (this.#mayEnd) this.endedInside = true
  }

  /** From now on every query is refused, also one that was asked for already and not yet sent. */
  end(): void {
    this.#over = true
  }

  get over(): boolean {
    return this.#over
  }

  /** The work has sent nothing here: what it wrote is elsewhere. */
  get unused(): boolean {
    return this.#asked === 0
  }

  /** Whether every query that was asked for has been answered, and every call on this transaction has ended. */
  get drained(): boolean {
    return this.#asked === this.#answered && this.#calls.none
  }

  /** Waits for queries that the work did not await: they are part of the work. */
  async drain(): Promise<void> {
    while (this.#asked !== this.#answered) await this.#tail
  }

  /** The same, and for calls of the library such as the inbox: between two of their statements no query is on its way. */
  async settled(): Promise<void> {
    while (!this.drained) {
      await this.drain()
      await this.#calls.settled()
    }
  }

  [KEEP_OPEN](call: Promise<unknown>): void {
    this.#calls.add(call)
  }

  query<R extends QueryResultRow = QueryResultRow>(
    config: string | QueryConfig,
    values?: readonly unknown[],
  ): Promise<QueryResult<R>> {
    const asked = asking.getStore()
    if (asked !== undefined) asked.own = this
    const refusal = this.#refusal(config)
    if (refusal !== null) return refuse(refusal)
    this.#asked += 1
    const alone = this.#asked === this.#answered + 1
    const sent = alone ? this.#send<R>(config, values) : this.#tail.then(() => this.#send<R>(config, values))
    // Also keeps a query that is not awaited from ending the process; its failure is noted all the same.
    this.#tail = sent.then(
      () => this.#note(null),
      (error) => this.#note(error),
    )
    return sent
  }

  #refusal(config: string | QueryConfig): OnlyonceError | null {
    if (this.#over) return new OnlyonceError('transaction_over')
    if (typeof (config as { submit?: unknown })?.submit === 'function') {
      return new OnlyonceError('option_invalid', { detail: NO_COPY })
    }
    const text = typeof config === 'string' ? config : config?.text
    if (typeof text === 'string' && CONTROLS.test(text))
      return new OnlyonceError('transaction_control_refused')
    return null
  }

  async #send<R extends QueryResultRow>(
    config: string | QueryConfig,
    values: readonly unknown[] | undefined,
  ): Promise<QueryResult<R>> {
    if (this.#over) throw new OnlyonceError('transaction_over')
    const client = this.#link.client ?? (await this.#link.attach())
    if (this.#over) throw new OnlyonceError('transaction_over')
    const { named } = this.#connections
    const query = pgQuery(client, config, values)
    if (this.#connections.settings.prepareWork) nameHabit(query, this.#connections.habits)
    if (!this.#begun && !mayFollowBegin(client, query)) {
      await flush(client, this.takeUnsent(), named)
      this.markOpened()
    }
    // Until something is answered, an earlier text may still be what ended it.
    this.#mayEnd ||= mayEnd(query)
    const timeout =
      typeof config === 'string' ? undefined : (config as { query_timeout?: number }).query_timeout
    return new Promise((resolve, reject) => {
      const guarded = new TxQuery(this.#gateFor(query.text), named, query, timeout)
      guarded.callback = (error, result) => (error ? reject(error) : resolve(result as QueryResult<R>))
      submit(client, guarded)
    })
  }

  #gateFor(text: string | undefined): Gate {
    return {
      open: () => {
        if (this.#over) return new OnlyonceError('transaction_over')
        if (!this.#begun) return this.takeUnsent()
        if (this.#opened && !this.wasEndedInside()) return []
        // BEGIN has failed, or the transaction is over: sent now, the query would stand by itself.
        return isOfClass(this.failure, Error) ? this.failure : new OnlyonceError('transaction_over')
      },
      opened: () => this.markOpened(),
      done: (tag) => {
        const ends = tag === 'COMMIT' || tag === 'PREPARE TRANSACTION'
        if (ends || (tag === 'ROLLBACK' && !isToSavepoint(text ?? ''))) this.endedInside = true
        else if (tag === 'ROLLBACK') this.failure = null
      },
    }
  }

  #note(error: unknown): void {
    this.#answered += 1
    // What the server has answered, and be it with an error, has told its tags before; see done(). A pooler that
    // has lost the server answers too, and knows nothing.
    if (error === null || !leavesDoubt(error)) this.#mayEnd = false
    if (error !== null) this.failure = error
  }
}

/**
 * Whether the answer ROLLBACK can only be about a savepoint. The server answers ROLLBACK with the same word, and in a text of several statements it
 * is not told which of them an answer is about: where one might be the end, the transaction counts as ended.
 */
function isToSavepoint(text: string): boolean {
  return ONE_TO_SAVEPOINT.test(text) || (SOME_TO_SAVEPOINT.test(text) && !MAY_END.test(withoutQuoted(text)))
}

/**
 * Quoted texts and names hold no statement that could end the transaction: the body of DO may not, and the server refuses it there. Where a
 * comment or a backslash makes it uncertain what is quoted, the text stays as it is.
 */
function withoutQuoted(text: string): string {
  return /--|\/\*|\\/.test(text) ? text : text.replace(QUOTED, "''")
}

/** Several statements in one text go over the simple protocol; only there can one hide that ends the transaction. */
function mayEnd(query: PgQuery): boolean {
  const text = query.text ?? ''
  return text.includes(';') && MAY_END.test(withoutQuoted(text))
}

/** A refusal that is not awaited must not end the process. */
export function refuse(refusal: OnlyonceError): Promise<never> {
  const refused = Promise.reject(refusal)
  refused.catch(() => {})
  return refused
}

/** Only what goes over the extended protocol anyway, and has no name of the caller's. */
function nameHabit(query: PgQuery, habits: Habits): void {
  if (query.name || typeof query.text !== 'string' || !Array.isArray(query.values)) return
  if (query.values.length === 0) return
  const name = habits.nameFor(query.text)
  if (name !== undefined) query.name = name
}
