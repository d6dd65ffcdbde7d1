import { EventEmitter } from 'node:events'
import pg from 'pg'
import { OnlyonceError } from '../core/errors.ts'
import { memberOf } from '../core/thrown.ts'
import { KEEP_OPEN, type KeepsOpen } from '../store/keep-open.ts'
import type { PostgresTx } from '../store/postgres/index.ts'
import { type Question, questionOf } from './question.ts'
import { type Seat, seatOf } from './seat.ts'
import { type Modes, meaningOf } from './statements.ts'

/** By which a pool tells its clients the transaction: its options are theirs. */
export const TX: unique symbol = Symbol.for('onlyonce.orm_tx')

export interface TxClientConfig {
  readonly [TX]?: PostgresTx
  readonly types?: unknown
}

type Answer = pg.QueryResult

const SAVEPOINT = 'SAVEPOINT onlyonce_orm'
const RELEASE = 'RELEASE SAVEPOINT onlyonce_orm'
/** One text, so that it is one round trip. */
const UNDO = 'ROLLBACK TO SAVEPOINT onlyonce_orm; RELEASE SAVEPOINT onlyonce_orm'

/**
 * A client of pg that has no connection: it sends on the transaction of a protected request. It is of the class of pg's own client, because libraries ask for
 * that, and has a connection in name only. Several of them may lead to one transaction.
 *
 * It never emits `error`: a library that does not listen would end the process. Who waits for an answer is told.
 */
export class TxClient extends pg.Client {
  readonly #tx: PostgresTx
  readonly #seat: Seat
  /** Whether the library has given parsers of types of its own. */
  readonly #givenTypes: boolean
  /** Between BEGIN and COMMIT or ROLLBACK; ends the promise that keeps the transaction open. */
  #nested: (() => void) | null = null
  /** The last statement that was asked for. pg sends the statements of one client in order, and so is it here. */
  #tail: Promise<unknown> | null = null
  #release: ((error?: Error | boolean) => void) | undefined
  #met = false
  #closing = false

  constructor(config: TxClientConfig = {}) {
    super({ connection: new EventEmitter(), types: config.types } as pg.ClientConfig)
    const tx = config[TX]
    if (tx === undefined)
      throw new OnlyonceError('option_invalid', { detail: 'Make this client by poolOf(tx) or driverOf(tx).' })
    this.#tx = tx
    this.#seat = seatOf(tx)
    this.#givenTypes = config.types !== undefined
  }

  override connect(callback?: unknown): never {
    const error = this.#met
      ? new Error('Client has already been connected. You cannot reuse a client.')
      : undefined
    this.#met = true
    const connected = new Promise<this>((resolve, reject) => {
      process.nextTick(() => {
        if (error === undefined) this.emit('connect')
        if (error === undefined || typeof callback === 'function') resolve(this)
        else reject(error)
        if (typeof callback === 'function') callback(error)
      })
    })
    this.#keepOpen(connected)
    return (typeof callback === 'function' ? undefined : connected) as never
  }

  override query(config?: unknown, values?: unknown, callback?: unknown): never {
    if (isSubmittable(config)) {
      const error = new OnlyonceError('statement_refused', { detail: NO_CURSOR })
      process.nextTick(() => config.handleError(error, memberOf(this, 'connection')))
      return config as never
    }
    const question = questionOf(config, values, callback)
    question.config.types ??= this.#types()
    const answer = this.#closing
      ? Promise.reject<Answer>(new Error('Client was closed and is not queryable'))
      : this.#inTurn(() => this.#answer(question))
    return tell(answer, question.callback) as never
  }

  /** As the library sees it: outside of its own BEGIN, no transaction is open. */
  override getTransactionStatus(): ReturnType<pg.Client['getTransactionStatus']> {
    return this.#nested === null ? 'I' : 'T'
  }

  /** Set by the pool whenever it lends the client. What was not ended by then is undone, as the server does it for a connection that is closed. */
  get release(): ((error?: Error | boolean) => void) | undefined {
    return this.#release
  }
  set release(release: ((error?: Error | boolean) => void) | undefined) {
    this.#release =
      release &&
      ((error) => {
        void this.#abandon()
        release(error)
      })
  }

  override end(callback?: unknown): never {
    this.#closing = true
    // Read by pools, which keep no client that was closed.
    Object.assign(this, { _ending: true })
    const ended = this.#abandon().then(() => void this.emit('end'))
    if (typeof callback !== 'function') return ended as never
    void ended.then(() => process.nextTick(() => callback()))
    return undefined as never
  }

  /** There is no socket that could keep the process alive. */
  ref(): void {}
  unref(): void {}

  /** Parsers that the library gave to this client, or set on it. Else those of the connection hold. */
  #types(): pg.CustomTypesConfig | undefined {
    const types = memberOf(this, '_types') as pg.CustomTypesConfig &
      Partial<Record<'text' | 'binary', object>>
    const set = this.#givenTypes || hasMembers(types.text) || hasMembers(types.binary)
    return set ? types : undefined
  }

  /** Behind what was asked before on this client. Nothing waits where nothing is under way. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const before = this.#tail
    const running = before === null ? run() : this.#keepOpen(before.then(run))
    const tail = running.then(noop, noop).then(() => {
      if (this.#tail === tail) this.#tail = null
    })
    this.#tail = tail
    return running
  }

  #answer({ config }: Question): Promise<Answer> {
    const meaning = meaningOf(config.text ?? '')
    switch (meaning.kind) {
      case 'plain':
        return this.#send(config)
      case 'begin':
        return this.#begin(meaning.command, meaning.modes)
      case 'commit':
        return this.#nested === null ? refuseEnd('COMMIT') : this.#commit()
      case 'rollback':
        return this.#nested === null ? refuseEnd('ROLLBACK') : this.#rollBack()
      case 'savepoint':
        return this.#nested === null ? refuseEnd('A savepoint') : this.#send(config)
      case 'modes':
        return this.#setModes(meaning.modes)
      case 'refused':
        return Promise.reject(meaning.error)
      default:
        return meaning satisfies never
    }
  }

  #send(config: string | pg.QueryConfig): Promise<Answer> {
    const waits = this.#seat.blocks(this)
    const sent = this.#seat.run(this, () => this.#tx.query(config))
    return waits ? this.#keepOpen(sent) : sent
  }

  async #begin(command: string, modes: Modes): Promise<Answer> {
    // As the server does it, which only warns.
    if (this.#nested !== null) return { ...NOTHING, command }
    try {
      const opening = this.#seat.take(this, async () => {
        await this.#checkIsolation(modes)
        return await this.#tx.query(SAVEPOINT)
      })
      const answer = await this.#keepOpen(opening)
      void this.#keepOpen(
        new Promise<void>((resolve) => {
          this.#nested = resolve
        }),
      )
      // Ends with the savepoint: the server restores it then.
      if (modes.readOnly) await this.#send('SET TRANSACTION READ ONLY')
      return named(answer, command)
    } catch (error) {
      if (this.#nested !== null) await this.#rollBack().catch(noop)
      this.#leave()
      throw error
    }
  }

  /** A nested transaction that a failed statement has aborted is not ended by COMMIT: its library would take it for committed. */
  async #commit(): Promise<Answer> {
    try {
      const answer = await this.#send(RELEASE)
      this.#leave()
      return named(answer, 'COMMIT')
    } catch (error) {
      if (memberOf(error, 'code') !== ABORTED) throw error
      throw new OnlyonceError('nested_transaction_failed', { cause: error })
    }
  }

  async #rollBack(): Promise<Answer> {
    try {
      const answers: unknown = await this.#send(UNDO)
      return named((Array.isArray(answers) ? answers[0] : answers) as Answer, 'ROLLBACK')
    } finally {
      // Where it has failed, the whole transaction is lost, and no other client can send anything either.
      this.#leave()
    }
  }

  async #setModes(modes: Modes): Promise<Answer> {
    if (modes.readOnly && this.#nested === null)
      throw new OnlyonceError('isolation_refused', { detail: NOT_NESTED })
    await this.#seat.run(this, () => this.#checkIsolation(modes))
    return modes.readOnly ? await this.#send('SET TRANSACTION READ ONLY') : { ...NOTHING, command: 'SET' }
  }

  /** Asks only where a level is wanted. */
  async #checkIsolation({ isolation }: Modes): Promise<void> {
    if (isolation === null) return
    const asked =
      this.#seat.isolation ??
      this.#tx.query('SHOW transaction_isolation').then(({ rows }) => `${rows[0]?.transaction_isolation}`)
    this.#seat.isolation = asked
    const actual = await asked.catch((error) => {
      this.#seat.isolation = null
      throw error
    })
    if (actual === isolation) return
    const detail = `The transaction is ${actual}, and ${isolation} was asked for inside of it.`
    throw new OnlyonceError('isolation_refused', { detail })
  }

  #leave(): void {
    this.#nested?.()
    this.#nested = null
    this.#seat.leave(this)
  }

  /** Behind what is under way: undoes what is still open then. */
  #abandon(): Promise<void> {
    if (this.#nested === null && this.#tail === null) return Promise.resolve()
    return this.#inTurn(async () => {
      if (this.#nested !== null) await this.#rollBack().catch(noop)
    })
  }

  #keepOpen<T>(call: Promise<T>): Promise<T> {
    return keepOpen(this.#tx, call)
  }
}

/** What waits for its turn, and a nested transaction that is open, are parts of the work, also where the work does not await them. */
export function keepOpen<T>(tx: PostgresTx, call: Promise<T>): Promise<T> {
  ;(tx as Partial<KeepsOpen>)[KEEP_OPEN]?.(call)
  return call
}

const ABORTED = '25P02'
const NOTHING = { rows: [], fields: [], rowCount: null, oid: 0 } as unknown as Answer
const NOT_NESTED = 'Only a nested transaction can be read only: send BEGIN first.'
const NO_CURSOR =
  'Cursors and streams of rows do not work through tx. Read pages, or use once.within with a client of your own.'

function noop(): void {}

function hasMembers(object: object | undefined): boolean {
  for (const _ in object) return true
  return false
}

function refuseEnd(what: string): Promise<never> {
  const detail = `${what} without a BEGIN on this client would be about the transaction of the protected request itself.`
  return Promise.reject(new OnlyonceError('transaction_control_refused', { detail }))
}

function named(answer: Answer, command: string): Answer {
  answer.command = command
  return answer
}

interface Submittable {
  handleError(error: Error, connection: unknown): void
}

function isSubmittable(config: unknown): config is Submittable {
  return typeof memberOf(config, 'submit') === 'function'
}

/** As pg does it: a callback that throws is not taken for a failed statement, and the process hears of it. */
function tell(answer: Promise<Answer>, callback: Question['callback']): Promise<Answer> | undefined {
  if (callback === undefined) {
    // As with tx itself: a statement that is not awaited does not end the process.
    answer.catch(noop)
    return answer
  }
  answer.then(
    (result) => process.nextTick(() => callback(null, result)),
    (error) => process.nextTick(() => callback(error)),
  )
  return undefined
}
