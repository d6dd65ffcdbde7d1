import { OnlyonceError } from '../core/errors.ts'
import { provesNothingDone, saysInvalid } from '../protect/proof.ts'
import type { Context } from './context.ts'
import type { ResolvedPolicy } from './policy.ts'
import type { HttpReply } from './reply.ts'

/** What the handler has come to, if it ran. */
export interface Ran {
  admitted: boolean
  /** The handler has begun: from here on only the record says what became of the request. */
  begun: boolean
  reply: HttpReply | null
  /** The handler has called its request invalid, and its own reply says so to the client. */
  ownReply: boolean
  thrown: { readonly error: unknown } | null
}

/** Lets the handler run, and notes what it came to. */
export async function noting<Tx>(
  ran: Ran,
  run: (context: Context<Tx>) => Promise<HttpReply>,
  context: Context<Tx>,
): Promise<HttpReply> {
  ran.begun = true
  try {
    ran.reply = await run(context)
    return ran.reply
  } catch (error) {
    // What leaves is the boundary's own answer to that, and not what a framework makes of the error.
    if (!saysInvalid(error) && !provesNothingDone(error)) ran.thrown = { error }
    throw error
  }
}

/** What the handler has said of its request, through its framework, is thrown on as if it had thrown that itself here. */
export function throwSaid<Tx>(ran: Ran, context: Context<Tx>, { status }: HttpReply): void {
  const said = context.invalidWith(status)
  if (said === null && context.statement !== null) throw context.statement
  if (said === null) return
  ran.ownReply = said.ownReply
  throw said.error
}

/**
 * A reply ends a handler for its transaction, but not the turn of the event loop in which it was sent: what the handler throws in the rest
 * of that turn is still heard, in every framework, before anything is committed.
 */
export function restOfTurn(): Promise<void> {
  // Runs when no microtask is left, by which a rejection travels from the handler to its framework.
  return new Promise((resolve) => process.nextTick(resolve))
}

/** The reply of a handler that threw behind it is that of work which is rolled back: no client may take it for the outcome. */
export function throwBehindReply<Tx>({ thrown }: Context<Tx>): void {
  if (thrown?.hadReplied === true) throw new OnlyonceError('not_applied', { cause: thrown.error })
}

/** The reply lets the request run again: it is sent, and the record says that nothing happened. */
export class NotFinal extends Error {
  readonly code: string

  constructor(status: number) {
    super(`The handler answered ${status}.`)
    this.code = `http_${status}`
  }
}

/**
 * A driver's error that was not translated is told as our own; its text is not for clients. Once the handler has begun it is
 * not that of a store that was away: a transaction that ends with an error was rolled back, and of anything else the outcome is not known.
 */
export function errorOf(error: unknown, begun: ResolvedPolicy['protect'] | null = null): OnlyonceError {
  if (error instanceof OnlyonceError) return error
  if (begun === null) return new OnlyonceError('store_unavailable', { cause: error })
  return new OnlyonceError(begun === 'transaction' ? 'not_applied' : 'outcome_unknown', { cause: error })
}
