/**
 * What is told of an error.
 *
 * `status` is what an HTTP boundary answers, `retryable` whether the same request with the same key may be
 * sent again, `executed` what the answer says about the key, and `message` the sentence for the client that sent the request, which says what to
 * do next. Where that is not for them to repair, `developer` says it to the developer of the service: it is the message of the error then,
 * and `message` is what a client of an API is told.
 */
export interface ErrorEntry {
  readonly status: number
  readonly retryable: boolean
  readonly executed: Executed
  readonly message: string
  readonly developer?: string
}

/**
 * Whether the action that a key names has taken effect, as far as an answer knows. An answer speaks for the key, not for
 * the request: a request that was refused at the door says nothing about an earlier one with the same key.
 *
 * - `no`: nothing has taken effect under this key. Only code that has seen the record, or has proved by a claim that there
 *   is none, can say so: see `Proof` in errors.ts.
 * - `not_by_this_request`: this request changed nothing. An earlier request with this key may have taken effect.
 * - `unknown`: it may have taken effect, or may still do so.
 * - `yes`: it has taken effect.
 *
 * With `retryable` it tells a client what to do. Retryable: send the same request with the same key again, which runs it
 * (`no`, `not_by_this_request`) or tells its outcome (`unknown`). Not retryable: it is final that nothing happened (`no`),
 * that this request was refused (`not_by_this_request`), that it happened (`yes`), or that the client cannot find out
 * by itself (`unknown`).
 */
export type Executed = 'no' | 'not_by_this_request' | 'unknown' | 'yes'

/** Sending the same request again changes nothing. */
export function final<Code extends string, E extends Executed>(
  status: number,
  executed: E,
  messages: Readonly<Record<Code, string>>,
) {
  return entries(status, false, executed, messages)
}

/** The same request with the same key may be sent again. */
export function retryable<Code extends string, E extends Executed>(
  status: number,
  executed: E,
  messages: Readonly<Record<Code, string>>,
) {
  return entries(status, true, executed, messages)
}

function entries<Code extends string, E extends Executed>(
  status: number,
  retryable: boolean,
  executed: E,
  messages: Readonly<Record<Code, string>>,
): Readonly<Record<Code, ErrorEntry & { readonly executed: E }>> {
  const made = Object.entries<string>(messages).map(([code, message]) => [
    code,
    { status, retryable, executed, message },
  ])
  return Object.fromEntries(made)
}

/** One sentence for all clients, and one for the developer under each code. */
export function told<Code extends string, E extends Executed>(
  status: number,
  retryable: boolean,
  executed: E,
  message: string,
  developers: Readonly<Record<Code, string>>,
): Readonly<Record<Code, ErrorEntry & { readonly executed: E; readonly developer: string }>> {
  const made = Object.entries<string>(developers).map(([code, developer]) => [
    code,
    { status, retryable, executed, message, developer },
  ])
  return Object.fromEntries(made)
}
