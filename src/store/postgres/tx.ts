import type { PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg'
import { OnlyonceError } from '../../errors.ts'
import { BeginWith, type PgQuery, pipelinedQuery } from './begin-with.ts'
import { type Bound, Flush, submit } from './flush.ts'

/** What the work of a transaction is given: a client that knows one thing, to run queries. */
export interface PostgresTx {
  query<R extends QueryResultRow = QueryResultRow>(
    text: string | QueryConfig,
    values?: readonly unknown[],
  ): Promise<QueryResult<R>>
}

/** Statements that would end the transaction, or pretend to begin it. ROLLBACK TO a savepoint is fine. */
const ENDS_TRANSACTION =
  /^\s*(?:commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!(?:\s+(?:work|transaction))?\s+to\b))\b/i

/**
 * A transaction that begins with its first statement. BEGIN travels in the same flush as that statement, so
 * that a transaction costs no round trip of its own.
 */
export class Tx implements PostgresTx {
  readonly #client: PoolClient
  readonly #begin: readonly Bound[]
  readonly #named: boolean
  #begun = false
  #over = false
  /** The last query that was sent: the next one goes behind it, as pg wants its callers to do. */
  #tail: Promise<unknown> | null = null
  /** The first error that the server gave. A transaction with one is aborted, whoever swallows it. */
  failure: unknown = null

  constructor(client: PoolClient, begin: readonly Bound[], named: boolean) {
    this.#client = client
    this.#begin = begin
    this.#named = named
  }

  /** The statements that have to go before whatever is sent next. */
  get unsent(): readonly Bound[] {
    return this.#begun ? [] : this.#begin
  }

  get begun(): boolean {
    return this.#begun
  }

  /** Somebody else has sent BEGIN. */
  markBegun(): void {
    this.#begun = true
  }

  /** From now on every query is refused: what comes later would run outside of the transaction. */
  end(): void {
    this.#over = true
  }

  query<R extends QueryResultRow = QueryResultRow>(
    config: string | QueryConfig,
    values?: readonly unknown[],
  ): Promise<QueryResult<R>> {
    if (this.#over) return Promise.reject(new OnlyonceError('transaction_over'))
    const text = typeof config === 'string' ? config : config?.text
    if (typeof text === 'string' && ENDS_TRANSACTION.test(text)) {
      return Promise.reject(new OnlyonceError('transaction_control_refused'))
    }
    const behind = this.#tail
    const sent =
      behind === null
        ? this.#send<R>(config, values)
        : behind.then(
            () => this.#send<R>(config, values),
            () => this.#send<R>(config, values),
          )
    this.#tail = sent
    return sent
  }

  async #send<R extends QueryResultRow>(
    config: string | QueryConfig,
    values: readonly unknown[] | undefined,
  ): Promise<QueryResult<R>> {
    if (this.#over) throw new OnlyonceError('transaction_over')
    try {
      const result = await (this.#begun
        ? this.#client.query<R>(config as QueryConfig, values as unknown[])
        : this.#beginWith<R>(config, values))
      if (transactionStatus(this.#client) === 'I') throw this.#endedInside()
      return result
    } catch (error) {
      this.failure ??= error
      throw error
    }
  }

  #beginWith<R extends QueryResultRow>(
    config: string | QueryConfig,
    values: readonly unknown[] | undefined,
  ): Promise<QueryResult<R>> {
    this.#begun = true
    const query = pipelinedQuery(this.#client, config, values)
    if (query === null) {
      const begin = new Flush(this.#begin, this.#named)
      return answer(begin, () => submit(this.#client, begin)).then(() =>
        this.#client.query<R>(config as QueryConfig, values as unknown[]),
      )
    }
    return answer(query, () => submit(this.#client, new BeginWith(this.#begin, this.#named, query)))
  }

  #endedInside(): OnlyonceError {
    this.end()
    return new OnlyonceError('transaction_ended_inside')
  }
}

function answer<T>(query: Flush | PgQuery, send: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    query.callback = (error, result) => (error ? reject(error) : resolve(result as T))
    send()
  })
}

/** `I` outside of a transaction, `T` inside, `E` inside one that failed. */
function transactionStatus(client: PoolClient): string | null {
  return (client as unknown as { getTransactionStatus(): string | null }).getTransactionStatus()
}
