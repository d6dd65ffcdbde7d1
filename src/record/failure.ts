import { ERRORS, OnlyonceError, type PlainCode } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { maskBeginning } from '../key/index.ts'
import type { Failure } from './index.ts'

/** What an error leaves in the history: its code or name, and a short message. Neither holds a card number. */
export function failureOf(error: unknown): Failure {
  try {
    return describe(error)
  } catch {
    // Getters that throw, messages that are no text: what was thrown still has to be told somehow.
    return { code: 'thrown', message: 'What was thrown cannot be read.' }
  }
}

function describe(error: unknown): Failure {
  if (!(error instanceof Error)) return { code: 'thrown', message: `A ${typeof error} was thrown.` }
  const code = (error as { code?: unknown }).code
  return {
    code: storable(
      typeof code === 'string' || typeof code === 'number' ? `${code}` : `${error.name}`,
      LIMITS.errorCodeLengthMax,
    ),
    message: storable(wordsOf(error), LIMITS.errorMessageLengthMax),
  }
}

/** The same, with what stands behind it: `fetch failed` alone says nothing, and its cause says that the connection was refused. */
export function failureWithCause(error: unknown): Failure {
  const { code, message } = failureOf(error)
  const cause = causeOf(error)
  if (cause === null) return { code, message }
  const behind = failureOf(cause)
  const text = `${message.replace(/\.?$/, '')} (${behind.code}: ${behind.message})`
  return { code, message: text.slice(0, LIMITS.errorMessageLengthMax) }
}

/** Errors of our own say by themselves what a reader needs. */
function causeOf(error: unknown): Error | null {
  try {
    const cause = error instanceof Error && !(error instanceof OnlyonceError) ? error.cause : null
    return cause instanceof Error ? cause : null
  } catch {
    return null
  }
}

/**
 * Operators and developers read what is kept. The sentence of the table is for the client that sent the request: its first part says what
 * happened, and the rest tells the client what to do next.
 */
function wordsOf(error: Error): string {
  const text = `${error.message}`
  if (!(error instanceof OnlyonceError)) return text
  const { message, developer } = ERRORS[error.code]
  // What the error means for the request that met it is not true of the work that was asked for: a beat, a save, or a worker's look.
  if (developer !== undefined) return text.replace(', so nothing was started.', '.')
  if (!text.startsWith(message)) return text
  const happened = message.split(/(?<=\.) /, 1)[0]!.replace(/; this (?:request|one) started nothing\.$/, '.')
  return `${happened}${text.slice(message.length)}`
}

/** An error of code that has no request to send again, such as a start or an operator's look: it says what happened, and no more. */
export function withoutRequest(error: unknown): unknown {
  if (!(error instanceof OnlyonceError)) return error
  const message = wordsOf(error)
  if (message === error.message) return error
  const { cause, status } = error
  const told = new OnlyonceError(error.code as PlainCode, { cause, status })
  const stack = `${error.stack}`.replace(error.message, () => message)
  return Object.defineProperties(told, {
    message: { value: message, configurable: true, writable: true },
    stack: { value: stack, configurable: true, writable: true },
  })
}

export function throwWithoutRequest(error: unknown): never {
  throw withoutRequest(error)
}

/** PostgreSQL's text holds no NUL. */
function storable(text: string, lengthMax: number): string {
  return maskBeginning(text.replaceAll('\0', ''), lengthMax)
}
