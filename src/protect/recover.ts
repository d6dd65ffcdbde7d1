import { setTimeout as sleep } from 'node:timers/promises'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { derivedKey, scopeOf } from '../key/index.ts'
import { failureOf } from '../record/failure.ts'
import type { Failure, RecordId, Reply } from '../record/index.ts'
import { encodeValue } from '../record/value.ts'
import { type GivenReply, replyOf } from './given-reply.ts'

/** One request whose handler gave no outcome: what `recover` is asked about. */
export interface RecoverContext extends RecordId {
  /** What the handler was given as `derivedKey`, and has passed on to the other side. */
  readonly derivedKey: string
  /** Aborted when the time for an answer is over. */
  readonly signal: AbortSignal
}

/**
 * What `recover` knows.
 *
 * - `found`: it happened. `value` is what a call from code gets, `reply` what a request over HTTP gets.
 * - `pending`: the other side is at it. Ask again later.
 * - `cannot_tell`: also where nothing was found. Not having seen it is no proof: it may still arrive.
 * - `void`: you state that the effect has not happened and can no longer happen under this key, because the other side has
 *   refused the key for good or has been told to. Only this lets the same request run again.
 */
export type Recovered =
  | { readonly status: 'found'; readonly value: unknown; readonly reply?: never }
  | { readonly status: 'found'; readonly reply: GivenReply; readonly value?: never }
  | { readonly status: 'pending' }
  | { readonly status: 'cannot_tell' }
  | { readonly status: 'void' }

/**
 * Finds out what became of a handler that gave no outcome, because its process died or stalled. It only asks: it must not
 * repeat the work. A throw, and an answer that takes longer than ten seconds, count as `cannot_tell`.
 *
 * @example
 * const recover: Recover = async ({ account, derivedKey, signal }) => {
 *   const order = await warehouse.findByReference(account, derivedKey, { signal })
 *   if (order === null) return { status: 'cannot_tell' }
 *   return { status: 'found', reply: { status: 201, body: JSON.stringify({ id: order.id }) } }
 * }
 */
export type Recover = (context: RecoverContext) => Recovered | Promise<Recovered>

/** The derived key of a handler: its work is one step, with this name. */
export function handlerKey({ account, operation, key }: RecordId): string {
  return derivedKey({ account, operation, key, step: 'handler' })
}

/** The `recover` functions that a process has, by the name of their operation. */
export class Recovers {
  readonly #known = new Map<string, Recover>()

  constructor(given: Readonly<Record<string, Recover>> = {}) {
    for (const [operation, recover] of Object.entries(given))
      this.add(scopeOf('any', operation).operation, recover)
  }

  add(operation: string, recover: Recover): void {
    if (typeof recover !== 'function') refuse(`recover of ${operation} is a function.`)
    const known = this.#known.get(operation)
    if (known === recover) return
    if (known !== undefined)
      refuse(`There are two recover functions for ${operation}. Give one of them another name.`)
    this.#known.set(operation, recover)
  }

  get(operation: string): Recover | undefined {
    return this.#known.get(operation)
  }

  get operations(): readonly string[] {
    return [...this.#known.keys()]
  }
}

/** What an answer comes to for the record. `later`: ask again, as long as the schedule has looks left. */
export type Asked =
  | { readonly end: 'found'; readonly reply: Reply }
  | { readonly end: 'void' }
  | { readonly end: 'later'; readonly failure: Failure }

/** Asks once, for a bounded time. Where anything goes wrong, nothing is known that was not known before. */
export async function ask(recover: Recover, { account, operation, key }: RecordId): Promise<Asked> {
  const over = new AbortController()
  const { signal } = over
  const context = { account, operation, key, derivedKey: handlerKey({ account, operation, key }), signal }
  const stop = new AbortController()
  const late = sleep(LIMITS.recoverMaxMs, TIMED_OUT, { signal: stop.signal }).then((asked) => {
    over.abort()
    return asked
  })
  late.catch(() => {})
  const answered = Promise.resolve()
    .then(() => recover(context))
    .then(askedOf)
    .catch((error): Asked => ({ end: 'later', failure: failureOf(error) }))
  const asked = await Promise.race([answered, late])
  stop.abort()
  return asked
}

function askedOf(answer: Recovered): Asked {
  switch (answer?.status) {
    case 'found':
      if (answer.reply !== undefined) return { end: 'found', reply: replyOf(answer.reply) }
      // Without either it says that it happened, and not what every retry is to be answered from now on.
      if (!('value' in answer)) return { end: 'later', failure: NOTHING_FOUND }
      return { end: 'found', reply: encodeValue(answer.value) }
    case 'void':
      return { end: 'void' }
    case 'pending':
      return { end: 'later', failure: PENDING }
    case 'cannot_tell':
      return { end: 'later', failure: CANNOT_TELL }
    default:
      return { end: 'later', failure: NO_ANSWER_AT_ALL }
  }
}

const TIMED_OUT: Asked = {
  end: 'later',
  failure: { code: 'recover_timed_out', message: 'recover gave no answer in time.' },
}
const PENDING: Failure = { code: 'recover_pending', message: 'recover says that the other side is at it.' }
const CANNOT_TELL: Failure = {
  code: 'recover_cannot_tell',
  message: 'recover cannot tell what became of it.',
}
const NO_ANSWER_AT_ALL: Failure = {
  code: 'recover_invalid',
  message: 'recover answered neither found, pending, cannot_tell nor void.',
}
const NOTHING_FOUND: Failure = {
  code: 'recover_invalid',
  message: 'recover answered found, with neither a reply nor a value.',
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}
