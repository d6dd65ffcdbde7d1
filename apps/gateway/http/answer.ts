import type { ServerResponse } from 'node:http'
import type { Call } from './call.ts'
import { bodyOf, Failure, INTERNAL_ERROR } from './failure.ts'

/** What is sent back, before anything goes wrong with it. */
export interface Reply {
  readonly status: number
  readonly body: string
  /** The request whose answer is given again. */
  readonly replayedOf?: string
}

const HTML = '<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>'

/** Ends a request before anything was done; false when nothing of the kind was planned. */
export function refuseAtOnce(call: Call): boolean {
  const { plan, response } = call
  if (plan.size === 0) return false
  if (plan.has('reset_before')) reset(response)
  else if (plan.has('lose_before')) response.destroy()
  else if (plan.has('busy')) answerBusy(call)
  else if (plan.has('error_before')) send(call, { status: 500, body: INTERNAL_ERROR })
  else return false
  return true
}

/** Answers, and does to the answer what was planned. */
export function answer(call: Call, reply: Reply): void {
  const { plan, response } = call
  if (plan.size === 0) send(call, reply)
  else if (plan.has('reset_after')) reset(response)
  else if (plan.has('lose_after')) response.destroy()
  else if (plan.has('html')) send(call, { status: 502, body: HTML }, 'text/html')
  else if (plan.has('html_ok')) send(call, { status: 200, body: HTML }, 'text/html')
  else if (plan.has('cut')) cut(call, reply)
  else if (plan.has('truncate')) send(call, { ...reply, body: reply.body.slice(0, reply.body.length / 2) })
  else if (plan.has('wrong_amount') || plan.has('wrong_currency')) send(call, falsified(call, reply))
  else send(call, reply)
}

/** Tells a refusal. Everything else that is thrown is a fault of ours: its client hears 500, and the others are served. */
export function answerFailure(
  call: Call | { response: ServerResponse; request: string },
  error: unknown,
): void {
  if (!(error instanceof Failure)) {
    answerFault(call, error)
    return
  }
  const reply = { status: error.status, body: bodyOf(error.details) }
  if ('plan' in call) answer(call, reply)
  else send({ ...call, key: null }, reply)
}

function answerFault(
  { response, request }: { response: ServerResponse; request: string },
  error: unknown,
): void {
  process.stderr.write(`Request ${request} failed: ${(error as Error)?.stack ?? error}\n`)
  if (response.headersSent) response.destroy()
  else send({ response, request, key: null }, { status: 500, body: FAULT })
}

const FAULT = bodyOf({ type: 'api_error', message: 'The sandbox could not do this. Its log says why.' })

function answerBusy(call: Call): void {
  const { response } = call
  response.setHeader('stripe-rate-limited-reason', 'global-rate')
  const message = 'Request rate limit exceeded. This sandbox was told to answer so.'
  send(call, { status: 429, body: bodyOf({ type: 'invalid_request_error', code: 'rate_limit', message }) })
}

type Answered = Pick<Call, 'response' | 'request' | 'key'>

function send(call: Answered, reply: Reply, type = 'application/json'): void {
  writeHead(call, reply, type)
  call.response.end(reply.body)
}

function writeHead({ response, request, key }: Answered, reply: Reply, type: string): void {
  const { status, body, replayedOf } = reply
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(body),
    'request-id': request,
    ...(key !== null && { 'idempotency-key': key }),
    ...(replayedOf !== undefined && { 'idempotent-replayed': 'true', 'original-request': replayedOf }),
  })
}

/** The head, half of the body, and the end of the connection: the client cannot take it for a connection that was never used. */
function cut(call: Call, reply: Reply): void {
  writeHead(call, reply, 'application/json')
  call.response.write(reply.body.slice(0, reply.body.length / 2), () => call.response.destroy())
}

function reset(response: ServerResponse): void {
  response.socket?.resetAndDestroy()
}

/** Another amount or currency than was asked for and moved, in one thing or in a list of them. */
function falsified({ plan }: Call, reply: Reply): Reply {
  const body = JSON.parse(reply.body)
  for (const thing of Array.isArray(body.data) ? body.data : [body]) {
    if (plan.has('wrong_amount')) {
      for (const name of ['amount', 'amount_received', 'amount_capturable']) {
        if (thing[name] > 0) thing[name] += 1
      }
    }
    if (plan.has('wrong_currency') && thing.currency !== undefined) {
      thing.currency = thing.currency === 'usd' ? 'eur' : 'usd'
    }
  }
  return { ...reply, body: JSON.stringify(body) }
}
