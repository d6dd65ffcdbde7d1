import type { Context } from './context.ts'
import type { HttpReply } from './reply.ts'

/** What the handler has come to, if it ran. */
export interface Ran {
  admitted: boolean
  reply: HttpReply | null
  thrown: { readonly error: unknown } | null
}

/** Lets the handler run, and notes what it came to. */
export async function noting<Tx>(
  ran: Ran,
  run: (context: Context<Tx>) => Promise<HttpReply>,
  context: Context<Tx>,
): Promise<HttpReply> {
  try {
    ran.reply = await run(context)
    return ran.reply
  } catch (error) {
    ran.thrown = { error }
    throw error
  }
}

/** The reply lets the request run again: it is sent, and the record says that nothing happened. */
export class NotFinal extends Error {
  readonly code: string

  constructor(status: number) {
    super(`The handler answered ${status}.`)
    this.code = `http_${status}`
  }
}
