/** The body of an error, as Stripe tells it. */
export interface FailureDetails {
  /** 401 and 429 are invalid requests too; their status makes the difference. */
  readonly type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error'
  readonly message: string
  readonly code?: string
  readonly param?: string
  /** The object that was in the way. */
  readonly payment_intent?: unknown
}

/** A request that is refused. */
export class Failure extends Error {
  readonly status: number
  readonly details: FailureDetails
  /** Whether it was refused while it was carried out: then the refusal is remembered under the key. */
  readonly executed: boolean

  constructor(status: number, details: FailureDetails, { executed = false } = {}) {
    super(details.message)
    this.name = 'Failure'
    this.status = status
    this.details = details
    this.executed = executed
  }
}

/** A request that nobody could carry out. */
export function invalidRequest(message: string, code?: string, param?: string): Failure {
  const details = { type: 'invalid_request_error' as const, message }
  return new Failure(400, {
    ...details,
    ...(code !== undefined && { code }),
    ...(param !== undefined && { param }),
  })
}

/** What does not exist: 404 where the path names it, 400 where a parameter does, as Stripe has it. */
export function missing(what: string, id: string, param: string, status: 400 | 404): Failure {
  return new Failure(status, {
    type: 'invalid_request_error',
    code: 'resource_missing',
    param,
    message: `No such ${what}: '${id}'`,
  })
}

/** A request that the state of things does not allow. */
export function conflict(code: string, message: string, more: Partial<FailureDetails> = {}): Failure {
  return new Failure(
    400,
    { type: 'invalid_request_error', code, message, ...more },
    {
      executed: true,
    },
  )
}

export function bodyOf(details: object): string {
  return JSON.stringify({ error: details })
}

export const INTERNAL_ERROR = bodyOf({
  type: 'api_error',
  message: 'An unknown error occurred. This sandbox was told to answer so.',
})
