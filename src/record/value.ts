import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { failureOf } from './failure.ts'
import type { Failure, Kind, Reply } from './index.ts'

/** What JSON cannot hold, and what is therefore refused. */
type Unstorable =
  | bigint
  | symbol
  | ((...args: never[]) => unknown)
  | RegExp
  | ReadonlyMap<unknown, unknown>
  | ReadonlySet<unknown>
  | ArrayBufferView
  | ArrayBuffer
  | Promise<unknown>

/**
 * What a value is after it was stored: dates are strings, members that are undefined are gone, and objects of a class are plain
 * objects without its methods. The first call returns this form too, so that an executed and a replayed result never
 * differ.
 */
export type Stored<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends Unstorable
    ? never
    : T extends { toJSON(): infer J }
      ? Stored<J>
      : T extends readonly unknown[]
        ? { [I in keyof T]: Stored<T[I]> }
        : T extends object
          ? {
              [K in keyof T as T[K] extends symbol | ((...args: never[]) => unknown) ? never : K]: Stored<
                T[K]
              >
            }
          : T

/** The form of replies that HTTP leaves: status, headers and body as they were sent. */
export const HTTP_SCHEMA = 3

/** The forms of replies that calls from code leave: a typed value, or an error that was thrown. */
const VALUE_SCHEMA = 1
const THROWN_SCHEMA = 2

/** The form of a reply of HTTP that stands for what its handler threw. It is sent as any other reply of HTTP. */
export const HTTP_THROWN_SCHEMA = 4

/** The form of a tombstone: what was replied is erased, and nothing runs under the key. sql/erasure.ts writes it. */
export const ERASED_SCHEMA = 5

export function isErased({ schema }: Pick<Reply, 'schema'>): boolean {
  return schema === ERASED_SCHEMA
}

export function isHttpReply({ schema }: Pick<Reply, 'schema'>): boolean {
  return schema === HTTP_SCHEMA || schema === HTTP_THROWN_SCHEMA
}

/** Whether a reply stands for what the function threw. */
export function isThrown({ schema }: Pick<Reply, 'schema'>): boolean {
  return schema === THROWN_SCHEMA || schema === HTTP_THROWN_SCHEMA
}

/**
 * How the attempt failed that left a stored reply; null where it did not. A handler that threw, or replied with 5xx, may have had
 * effects before, and its record is completed all the same: it is never run again.
 */
export function failureOfReply(reply: Pick<Reply, 'status' | 'schema'>, kind: Kind): Failure | null {
  if (isThrown(reply)) return { code: 'handler_failed', message: 'The function threw.' }
  if (!kind.startsWith('handler') || reply.status < 500) return null
  const message = `The handler answered with the status ${reply.status}, or its framework did so after an error in it.`
  return { code: `http_${reply.status}`, message }
}

/** What the function threw, where the reply tells it: its code and message. Opening a sealed reply may throw. */
export function thrownIn(reply: Reply): Failure | null {
  return reply.schema === THROWN_SCHEMA ? (JSON.parse(String(reply.body)) as Failure) : null
}

/** A value as a reply: JSON, or nothing at all for undefined. */
export function encodeValue(value: unknown): Reply {
  const text = value === undefined ? '' : stringify(value)
  const body = Buffer.from(text, 'utf8')
  if (body.length > LIMITS.replySizeMaxBytes) {
    throw new OnlyonceError('value_too_large', {
      detail: `It has ${body.length} bytes; the limit is ${LIMITS.replySizeMaxBytes}.`,
    })
  }
  return { status: 200, headers: [], body, schema: VALUE_SCHEMA, sealedBy: null }
}

/** The input of an operation. That it cannot be stored is told apart from a reply that cannot be: here nothing has begun. */
export function encodeInput(value: unknown): Buffer {
  try {
    return encodeValue(value).body!
  } catch (cause) {
    throw new OnlyonceError('input_not_serializable', { detail: (cause as Error).message, cause })
  }
}

/** An error that work threw, as a reply: its code and a short message, which is all that a replay tells. */
export function encodeThrown(error: unknown): Reply {
  const body = Buffer.from(JSON.stringify(failureOf(error)), 'utf8')
  return { status: 500, headers: [], body, schema: THROWN_SCHEMA, sealedBy: null }
}

/** The value of a reply. Throws `handler_failed` where an error is stored instead of one, and `key_erased` where nothing is left of it. */
export function decodeValue(reply: Reply): unknown {
  if (isErased(reply)) throw new OnlyonceError('key_erased')
  if (isThrown(reply)) {
    const said = thrownIn(reply)
    // Not in the message, which clients are shown: what was thrown may be the text of a driver.
    const cause = said === null ? undefined : new Error(`It said: ${said.code}: ${said.message}`)
    throw new OnlyonceError('handler_failed', { cause })
  }
  if (reply.body === null) {
    throw new OnlyonceError('reply_not_kept', { detail: `Its status was ${reply.status}.` })
  }
  return reply.body.length === 0 ? undefined : parseValue(reply.body)
}

/** A route, or an operator, may have left a reply that is no JSON under the key of a call from code. */
function parseValue(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (cause) {
    throw new OnlyonceError('reply_not_json', { cause })
  }
}

function stringify(value: unknown): string {
  try {
    const text = JSON.stringify(value, refuseLossy)
    if (text !== undefined) return text
  } catch (error) {
    if (error instanceof OnlyonceError) throw error
    throw new OnlyonceError('value_not_serializable', { cause: error })
  }
  throw new OnlyonceError('value_not_serializable')
}

/**
 * JSON would quietly turn these into something else, and a replay would then differ from the first result. `this` is the object
 * that holds the value: JSON has asked `toJSON` already, and writes null for an invalid date.
 */
function refuseLossy(this: unknown, name: string, value: unknown): unknown {
  const given = (this as Record<string, unknown>)[name]
  if (given instanceof Date && Number.isNaN(given.getTime())) refuse(name, 'is an invalid date')
  // A Buffer has a toJSON, which makes an object of numbers of it.
  if (given instanceof Uint8Array) refuse(name, 'holds bytes; encode them as text')
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) refuse(name, 'is not a finite number')
      return value
    case 'function':
    case 'symbol':
    case 'bigint':
      return refuse(name, `is a ${typeof value}`)
    case 'undefined':
      // A member that is undefined is left out; an element would become null.
      if (Array.isArray(this)) refuse(name, 'is undefined in a list')
      return value
    case 'object':
      if (value !== null) refuseHidden(name, value)
      return value
    default:
      return value
  }
}

/**
 * Objects of a class are kept by their own members. One that shows none, such as an Error, a RegExp, a Map or a Set, has what it
 * knows elsewhere: all of them would become {}.
 */
function refuseHidden(name: string, value: object): void {
  if (Array.isArray(value)) {
    if (Object.keys(value).length > value.length) refuse(name, 'is a list with members beside its elements')
    return
  }
  const prototype = Object.getPrototypeOf(value)
  // Object.prototype of any realm, or no prototype at all.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return
  const tag = Object.prototype.toString.call(value)
  if (tag !== '[object Object]' || Object.keys(value).length === 0) {
    refuse(
      name,
      `is ${tag === '[object Object]' ? 'an object' : `of the kind ${tag.slice(8, -1)}`} that JSON cannot show`,
    )
  }
}

function refuse(name: string, problem: string): never {
  const which = name === '' ? 'It' : `Its member ${name}`
  throw new OnlyonceError('value_not_serializable', { detail: `${which} ${problem}.` })
}
