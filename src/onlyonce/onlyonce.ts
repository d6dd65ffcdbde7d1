import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { refuseStray, refuseUnknown } from '../core/options.ts'
import { VERSION } from '../core/version.ts'
import type { Operation } from '../operation/operation.ts'
import type { HandlerContext, WorkEnd } from '../protect/handler.ts'
import { provesNothingDone, saysInvalid } from '../protect/proof.ts'
import type { Outcome } from '../protect/transaction.ts'
import { throwWithoutRequest } from '../record/failure.ts'
import type { Stuck } from '../record/index.ts'
import { decodeValue, encodeThrown, encodeValue, type Stored } from '../record/value.ts'
import type { Queryable } from '../store/contract.ts'
import { keepOpen } from '../store/keep-open.ts'
import type {
  ExecuteCall,
  IssueKeyCall,
  KeyName,
  Onlyonce,
  OnlyonceOptions,
  ProtectedCall,
  Result,
  RunCall,
  RunResult,
  TransactionCall,
} from './door.ts'
import { CALLS } from './door-options.ts'
import { Engine } from './engine.ts'
import type { Explanation } from './explain.ts'
import type { IssuedKey } from './issuer.ts'
import { positive } from './requests.ts'

/**
 * The front door.
 *
 * @example
 * const once = onlyonce({ store: postgres({ pool }), secret: process.env.ONLYONCE_SECRET })
 */
export function onlyonce<Tx>(options: OnlyonceOptions<Tx>): Onlyonce<Tx> {
  return new FrontDoor(options)
}

/** The engine behind a front door: what the HTTP boundary, and no code outside, goes on with. */
export function engineOf<Tx>(once: Onlyonce<Tx>): Engine<Tx> {
  const door = (once as Partial<BehindDoor<Tx>> | null | undefined)?.[DOOR]
  if (door?.version === VERSION) return door.engine
  const detail = door === undefined ? 'Pass what onlyonce() returned.' : otherVersion(door.version)
  throw new OnlyonceError('option_invalid', { detail })
}

/** Known to all copies of the package in a process. */
const DOOR: unique symbol = Symbol.for('onlyonce.door')

interface BehindDoor<Tx> {
  readonly [DOOR]: { readonly version: string; readonly engine: Engine<Tx> }
}

/** Copies of one version work together. What is behind the door may differ between versions. */
function otherVersion(version: string): string {
  return `It was made by version ${version} of the package, and this is ${VERSION}. Install one version (see npm ls onlyonce).`
}

/** Calls with typed values. */
class FrontDoor<Tx> implements Onlyonce<Tx> {
  readonly #engine: Engine<Tx>
  readonly #missing = new Set<string>()

  constructor(options: OnlyonceOptions<Tx>) {
    this.#engine = new Engine(options)
    // Not enumerable: code that prints or copies the door does not see what is behind it.
    Object.defineProperty(this, DOOR, { value: { version: VERSION, engine: this.#engine } })
  }

  async transaction<T>(call: TransactionCall, work: (tx: Tx) => Promise<T>): Promise<Result<Stored<T>>> {
    this.#engine.refuseWhenClosing()
    refuseStray('once.transaction()', call, CALLS.transaction, 'transaction')
    requireWork('once.transaction()', work)
    if (this.#engine.requests.lacksSecret) await this.#engine.secretKnown()
    const request = this.#engine.requests.transaction(call)
    return await this.#engine.transaction(request, async (tx) => encodeValue(await work(tx)), resultOf<T>)
  }

  async execute<T>(
    call: ExecuteCall,
    work: (context: HandlerContext) => Promise<T>,
  ): Promise<Result<Stored<T>>> {
    this.#engine.refuseWhenClosing()
    refuseStray('once.execute()', call, CALLS.handler, 'handler')
    requireWork('once.execute()', work)
    if (this.#engine.requests.lacksSecret) await this.#engine.secretKnown()
    const request = this.#engine.requests.handler(call)
    return await this.#engine.handler(request, (context) => endOf(work, context), resultOf<T>)
  }

  async within<T>(
    tx: Queryable,
    call: ProtectedCall,
    work: (tx: Queryable) => Promise<T>,
  ): Promise<Result<Stored<T>>> {
    this.#engine.refuseWhenClosing()
    refuseStray('once.within()', call, CALLS.within, 'within')
    requireWork('once.within()', work)
    if (this.#engine.requests.lacksSecret) await this.#engine.secretKnown()
    const request = this.#engine.requests.transaction(call)
    const protectedWork = async (inner: Queryable) => encodeValue(await work(inner))
    return await keepOpen(tx, () => this.#engine.within(tx, request, protectedWork, resultOf<T>))
  }

  async run<Input, T>(operation: Operation<Input, T>, call: RunCall<Input>): Promise<RunResult<T>> {
    this.#engine.refuseWhenClosing()
    refuseStray('once.run()', call, CALLS.run, 'operation')
    requireOperation(operation)
    if (this.#engine.requests.lacksSecret) await this.#engine.secretKnown()
    const request = this.#engine.requests.operation(operation.name, call)
    const running = this.#engine.run(request, operation as Operation<unknown, unknown>, runResultOf<T>)
    return await running.catch((error) => {
      if (error instanceof OnlyonceError && error.code === 'operation_unknown')
        this.#tellMissing(operation.name, error)
      throw error
    })
  }

  /** This process was deployed without code that a record needs. Names of operations: there are only so many. */
  #tellMissing(name: string, error: OnlyonceError): void {
    const first = !this.#missing.has(name)
    this.#missing.add(name)
    this.#engine.observers.mistake(`once.run() of ${name}`, error, first)
  }

  issueKey(call: IssueKeyCall): IssuedKey {
    refuseUnknown('once.issueKey()', call, CALLS.issueKey)
    return this.#engine.requests.issueKey(call)
  }

  async explain(call: KeyName | ProtectedCall): Promise<Explanation> {
    refuseUnknown('once.explain()', call, CALLS.explain)
    return await this.#engine.explain(this.#engine.requests.idToLookAt(call))
  }

  async stuck(options: { readonly olderThanMs?: number } = {}): Promise<Stuck> {
    refuseUnknown('once.stuck()', options, { olderThanMs: true })
    return await this.#engine.stuck(options.olderThanMs)
  }

  start(): Promise<void> {
    return this.#engine.start().catch(throwWithoutRequest)
  }

  async close(options: { readonly maxMs?: number } = {}): Promise<void> {
    refuseUnknown('once.close()', options, { maxMs: true })
    await this.#engine.close(positive('maxMs', options.maxMs ?? LIMITS.closeMaxMs))
  }
}

/** Before the key is claimed: work that cannot run would leave a record that says that it failed. */
function requireWork(call: string, work: unknown): void {
  if (typeof work === 'function') return
  throw new OnlyonceError('option_invalid', {
    detail: `${call} takes the function to run as its last argument.`,
  })
}

function requireOperation(operation: unknown): void {
  if (typeof (operation as { run?: unknown } | null | undefined)?.run === 'function') return
  throw new OnlyonceError('option_invalid', {
    detail: `once.run() takes an operation, as operation() makes it.`,
  })
}

/** Runs work and tells how it ended. What cannot be stored has still been done, so it counts as thrown. */
async function endOf<T>(
  work: (context: HandlerContext) => Promise<T>,
  context: HandlerContext,
): Promise<WorkEnd> {
  try {
    return { end: 'reply', reply: encodeValue(await work(context)) }
  } catch (error) {
    if (saysInvalid(error)) return { end: 'invalid', error }
    return provesNothingDone(error)
      ? { end: 'not_executed', error }
      : { end: 'threw', error, reply: encodeThrown(error) }
  }
}

function runResultOf<T>(outcome: Outcome, joined: boolean): RunResult<T> {
  const result = resultOf<T>(outcome, joined) as Result<T>
  if (!('value' in result)) return result
  const { status } = (outcome as Extract<Outcome, { reply: unknown }>).reply
  return { ...result, status }
}

function resultOf<T>(outcome: Outcome, joined: boolean): Result<Stored<T>> {
  switch (outcome.outcome) {
    case 'executed':
    case 'replayed':
      return {
        outcome: joined ? 'replayed' : outcome.outcome,
        value: decodeValue(outcome.reply) as Stored<T>,
      }
    case 'unknown':
      return { outcome: 'unknown', why: outcome.failure.message, retryAfterMs: outcome.retryAfterMs }
    case 'parked':
      return { outcome: 'parked', why: outcome.failure.message }
    case 'in_progress':
    case 'key_reused':
      return outcome
    default:
      return outcome satisfies never
  }
}
