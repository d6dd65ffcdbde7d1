import type { Answer, Boundary, BoundaryRequest, HttpReply, IdempotencyContext } from '../../index.ts'
import { capture, overhear, responseOf } from './response.ts'

/** What is known of a request beside what it says itself. */
export type Known = Pick<BoundaryRequest, 'route' | 'patterns' | 'pathParams' | 'account' | 'body'>

export function requestOf(request: Request, url: URL, known: Known): BoundaryRequest {
  return {
    ...known,
    carriers: [request],
    method: request.method,
    path: url.pathname,
    query: url.search.slice(1),
    header: (name) => request.headers.get(name) ?? undefined,
  }
}

/** Lets the handler run, and resolves with its response. Null for a request that is not protected. */
export type Handle<Tx> = (context: IdempotencyContext<Tx> | null) => Promise<Response>

/**
 * Runs a request through the boundary, and resolves with the response that may leave. What the handler throws is thrown
 * on, when the record knows of it.
 */
export function serve<Tx>(
  boundary: Boundary<Tx>,
  request: BoundaryRequest,
  handle: Handle<Tx>,
  signal: () => AbortSignal,
  replace: (reply: HttpReply) => Response = responseOf,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    let held: Response | null = null
    let isAnswered = false
    const run = async (context: IdempotencyContext<Tx>): Promise<HttpReply> => {
      const given = await handle(context)
      const { stream, replySizeMaxBytes } = boundary.policy
      const isOver = () => isAnswered
      // A response that comes too late for its client is read for the record alone.
      if (isAnswered) return await overhear(given, replySizeMaxBytes, NO_CLIENT, isOver).ended
      if (stream) {
        const { response, ended } = overhear(given, replySizeMaxBytes, signal(), isOver)
        // It leaves now; what is decided later, about the record, changes nothing of it.
        resolve(response)
        return await ended
      }
      const { reply, response } = await capture(given)
      held = response
      return reply
    }
    const finish = async (answer: Answer) => {
      isAnswered = true
      switch (answer.answer) {
        case 'pass':
          return resolve(await handle(answer.context))
        case 'release':
          if (held !== null) resolve(held)
          return
        case 'reply':
          return resolve(replace(answer.reply))
        default:
          return answer satisfies never
      }
    }
    Promise.resolve(boundary.handle(request, run)).then(finish).catch(reject)
  })
}

const NO_CLIENT = AbortSignal.abort()
