import type { IncomingMessage, ServerResponse } from 'node:http'
import { OnlyonceError } from '../../../core/errors.ts'
import type {
  Answer,
  Boundary,
  BoundaryRequest,
  HttpReply,
  IdempotencyContext,
  RequestBody,
} from '../../index.ts'
import { readBody } from './body.ts'
import { CapturedResponse, type Headers, sendReply } from './capture.ts'
import { Shield } from './shield.ts'
import { type Tee, teeResponse } from './tee.ts'

/** What a framework knows of a request beside Node's own. */
export type Known = Pick<BoundaryRequest, 'route' | 'constraints' | 'host' | 'pathParams' | 'account'>

/** The path and the query of a request, as they were sent. */
export function splitUrl(url: string): { readonly path: string; readonly query: string } {
  const mark = url.indexOf('?')
  return mark < 0 ? { path: url, query: '' } : { path: url.slice(0, mark), query: url.slice(mark + 1) }
}

/** Where the framework knows no pattern. */
export const NO_PATTERN: Omit<Known, 'account'> = { route: null, pathParams: {} }

export function requestOf(
  request: IncomingMessage,
  url: string,
  known: Known,
  bodySizeMaxBytes: number,
): BoundaryRequest {
  const { path, query } = splitUrl(url)
  return {
    ...known,
    method: request.method ?? 'GET',
    path,
    query,
    carriers: [request],
    header: (name) => headerOf(request, name),
    body: () => readBody(request, bodySizeMaxBytes),
  }
}

/**
 * Node joins or drops repeated headers; whether there were several counts for a key. What holds no comma was not joined, and
 * those that Node drops are none that a key is sent in: then the list of all headers need not be made.
 */
export function headerOf(request: IncomingMessage, name: string): string | readonly string[] | undefined {
  const joined = request.headers[name]
  if (joined === undefined || (typeof joined === 'string' && !joined.includes(','))) return joined
  const values = request.headersDistinct[name]
  return values === undefined || values.length !== 1 ? values : values[0]
}

/**
 * Runs a request through the boundary on Node's own request and response. `next` lets the handler run; what it
 * answers is held back until it may leave. Tells what became of it: a reply of the boundary's own may come while the
 * handler still runs. What the boundary answers at once is sent at once.
 */
export function serve<Tx>(
  boundary: Boundary<Tx>,
  request: BoundaryRequest,
  response: ServerResponse,
  next: (context: IdempotencyContext<Tx> | null) => void,
  headersBefore: () => Headers = () => response.getHeaders() as Headers,
  asksSocket: boolean = false,
): Answer['answer'] | Promise<Answer['answer']> {
  let captured: CapturedResponse | null = null
  let tee: Tee | null = null
  let shield: Shield | null = null
  /** From the moment on in which the request is whole, the client is not needed any more. */
  const raised = (): Shield => {
    shield ??= new Shield(response.req, response, asksSocket)
    shield.raise()
    return shield
  }
  const run = (context: IdempotencyContext<Tx>): Promise<HttpReply> => {
    const shielded = raised()
    const { replySizeMaxBytes } = boundary.policy
    if (boundary.policy.stream) {
      tee = teeResponse(response, replySizeMaxBytes, shielded, headersBefore())
      next(context)
      return tee.ended
    }
    captured = new CapturedResponse(response, headersBefore(), replySizeMaxBytes)
    next(context)
    return captured.ended
  }
  const finish = (answer: Answer): Answer['answer'] => {
    if (answer.answer === 'pass') next(answer.context)
    else if (answer.answer === 'release') captured?.release()
    else if (captured !== null) captured.replace(answer.reply)
    else if (response.headersSent) return answer.answer
    else if (tee !== null) tee.replace(answer.reply)
    else sendReply(response, headersBefore(), answer.reply)
    return answer.answer
  }
  let isWhole = false
  const body = (): RequestBody | Promise<RequestBody> => {
    refuseHttp2(response)
    const given = request.body()
    isWhole = !(given instanceof Promise)
    if (!(given instanceof Promise)) return given
    return given.then((whole) => {
      raised()
      return whole
    })
  }
  const answer = boundary.handle({ ...request, body }, run)
  if (!(answer instanceof Promise)) return finish(answer)
  if (isWhole) raised()
  // What was put on the response last has to go first.
  const giveBack = () => {
    captured?.giveBack()
    shield?.lift()
  }
  return answer.then(
    (settled) => {
      giveBack()
      // A handler that is not through is not told that its client has hung up: its reply is still good for the record.
      const goesOn = settled.answer === 'reply' && captured?.isOpen === true
      if (!goesOn) shield?.tell()
      finish(settled)
      if (goesOn) shield?.tell()
      return settled.answer
    },
    (error) => {
      giveBack()
      shield?.tell()
      throw error
    },
  )
}

/**
 * Over HTTP/2 a request tells its end apart from its last bytes: put back, the body would come too late, and the handler would run
 * without it. And a body need not say its length: taken for none, another body would pass for a retry.
 */
function refuseHttp2({ req }: ServerResponse): void {
  if (req.httpVersionMajor >= 2) throw new OnlyonceError('setup_invalid', { detail: HTTP2_REFUSED })
}

export const HTTP2_REFUSED =
  'Requests over HTTP/2 are not protected here, and not run. Speak HTTP/1.1 between the proxy and the service.'
