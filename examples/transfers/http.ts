import type { IncomingMessage, ServerResponse } from 'node:http'
import { OnlyonceError, type Result } from '../../src/index.ts'
import type { TransferResult } from './transfers.ts'

const BODY_SIZE_MAX_BYTES = 10_000

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

/** A refusal that the client can understand. */
export class Problem extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Every outcome of a protected call, as HTTP. */
export function answerOutcome(result: Result<TransferResult>): Answer {
  switch (result.outcome) {
    case 'executed':
      return answerTransfer(result.value)
    case 'replayed':
      return { ...answerTransfer(result.value), headers: { 'Idempotent-Replayed': 'true' } }
    case 'in_progress':
      return waitAnswer('in_progress', 'A request with this key is still running.', result.retryAfterMs)
    case 'unknown':
      return waitAnswer(
        'outcome_unknown',
        'Whether this took effect is not known yet. Send the same request with the same key again later.',
        result.retryAfterMs,
      )
    case 'parked':
      return refusal(409, 'parked', 'Whether this took effect has to be decided by a person.', false)
    case 'key_reused':
      return refusal(422, 'key_reused', 'This key was used for another request. Send a new key.', false)
    default:
      return result satisfies never
  }
}

export function answerError(error: unknown): Answer {
  if (error instanceof Problem) return refusal(error.status, error.code, error.message, false)
  if (error instanceof OnlyonceError) {
    return refusal(error.status, error.code, error.message, error.retryable)
  }
  console.error(error)
  return refusal(500, 'internal', 'Something went wrong; the transaction was rolled back.', true)
}

/** Reads a JSON body up to a limit. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  // Not destroyed when the loop is left: the client shall still get its answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    sizeBytes += chunk.length
    if (sizeBytes > BODY_SIZE_MAX_BYTES) {
      throw new Problem(413, 'body_too_large', `Send at most ${BODY_SIZE_MAX_BYTES} bytes.`)
    }
    chunks.push(chunk)
  }
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch {
    throw new Problem(400, 'json_malformed', 'The body is not valid JSON in UTF-8.')
  }
}

export function send(response: ServerResponse, { status, headers, body }: Answer): void {
  const text = `${JSON.stringify(body)}\n`
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    // What is left of a body that was too large must not be taken for the next request.
    ...(status === 413 && { Connection: 'close' }),
    ...headers,
  })
  response.end(text)
}

function answerTransfer(value: TransferResult): Answer {
  return value.result === 'transferred'
    ? { status: 201, body: value }
    : refusal(402, value.result, 'The balance is too low for this transfer.', false)
}

function waitAnswer(code: string, message: string, retryAfterMs: number): Answer {
  const headers = { 'Retry-After': `${Math.ceil(retryAfterMs / 1_000)}` }
  return { ...refusal(409, code, message, true), headers }
}

function refusal(status: number, code: string, message: string, retryable: boolean): Answer {
  return { status, body: { code, message, retryable } }
}
