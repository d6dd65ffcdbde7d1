import { OnlyonceError } from '../core/errors.ts'
import { Deadline } from '../core/retry.ts'
import { parseKeyHeader, scopeOf } from '../key/index.ts'
import type { Requests } from '../onlyonce/requests.ts'
import type { TransactionRequest } from '../protect/transaction.ts'
import { ANY_OPERATION } from '../record/index.ts'
import { type Asked, askedOf } from './admission.ts'
import { bodyThatCounts } from './body.ts'
import { inTime, LATE } from './in-time.ts'
import { keyFrom } from './key-source.ts'
import { jsonOf, operationInputOf, refuseNotJson } from './operation-input.ts'
import type { ResolvedPolicy } from './policy.ts'
import {
  type BoundaryRequest,
  headerOf,
  operationOf,
  patternOf,
  preimageOf,
  type RequestBody,
} from './request.ts'
import { RouteThrew } from './route-threw.ts'
import { type BodyIssue, type StandardSchema, type Validated, validate } from './validate.ts'

/** A request that was read, and with which a key can be claimed. */
export interface Prepared {
  readonly request: TransactionRequest
  /** As it counts. */
  readonly body: RequestBody
  /** How messages name the route; null where it has no pattern. */
  readonly at: string | null
  /** Of a durable operation. */
  readonly input: Buffer | null
  /** What `admit` is asked, where the route has it. */
  readonly asked: Asked | null
  /** That the client gave; null where it gave none. Bounds what has not begun, so it cuts none of the bounds of the route. */
  readonly deadline: Deadline | null
  /** What is wrong with the body, by the schema of the route; null where nothing is. */
  readonly issues: readonly BodyIssue[] | null
  /** What the schema of the route has made of the body; undefined where there is no schema. */
  readonly valid: unknown
}

/**
 * Reads what counts of a request: whose it is, its key, what it does, and its body. All that is malformed is refused here, before
 * anything is asked of the store. Comes at once where the body was read already.
 */
export function prepare(
  request: BoundaryRequest,
  policy: ResolvedPolicy,
  requests: Requests,
  leftMs: number | null,
  sizeMaxBytes: number,
): Prepared | Promise<Prepared> {
  const rules = requests.rules(policy.key === 'issued' ? 'required' : undefined)
  const { keyOf } = policy
  let key = keyOf === null ? parseKeyHeader(headerOf(request, policy.headers), rules) : null
  if (request.account === null) throw new OnlyonceError('account_missing')
  const deadline = leftMs === null ? null : new Deadline(leftMs)
  const name = operationOf(request, policy)
  const { account, operation } = scopeOf(request.account, name)
  const identify = (body: RequestBody, validated: Validated | null = null): Prepared => {
    const issues = validated !== null && 'issues' in validated ? validated.issues : null
    const preimage = preimageOf(request, body, operation, policy, sizeMaxBytes)
    // Behind the preimage: a body that is malformed is told so, and not by the function that wants a key of it.
    key ??= keyFrom(keyOf!, request, body, rules)
    // With one scope for all operations of an account, the operation still counts in the fingerprint.
    const id = { account, operation: policy.scope === 'account' ? ANY_OPERATION : operation, key }
    const made: RequestBody =
      validated !== null && 'value' in validated ? { kind: 'parsed', value: validated.value } : body
    const input = policy.durable === null || issues !== null ? null : operationInputOf(request, made, policy)
    const asked = policy.admit === null ? null : askedOf(request, body, { account, operation, key })
    return {
      request: requests.identified(id, policy.bounds, preimage, false),
      body,
      at: patternOf(request),
      input,
      asked,
      deadline,
      issues,
      valid: validated !== null && 'value' in validated ? validated.value : undefined,
    }
  }
  const given = request.body()
  const read = (body: RequestBody) => bodyThatCounts(request, body, sizeMaxBytes)
  const body = given instanceof Promise ? given.then(read) : read(given)
  const { validate: schema } = policy
  if (schema !== null) return checked(schema, request, body, identify)
  return body instanceof Promise ? body.then((one) => identify(one)) : identify(body)
}

/**
 * Fingerprinted first: what is malformed, or no JSON at all, is told so, and not by a schema. A schema that does not answer in time
 * is as a deadline that has passed: what was done before is answered as ever, and nothing begins.
 */
async function checked(
  schema: StandardSchema,
  request: BoundaryRequest,
  given: RequestBody | Promise<RequestBody>,
  identify: (body: RequestBody, validated: Validated | null) => Prepared,
): Promise<Prepared> {
  const body = await given
  const unchecked = identify(body, { issues: [] })
  refuseNotJson(request, body)
  const { deadlineMs } = unchecked.request
  const maxMs = Math.min(deadlineMs, unchecked.deadline?.leftMs ?? deadlineMs)
  const validated = await inTime(validate(schema, jsonOf(request, body)), maxMs).catch((error) => {
    throw new RouteThrew(error)
  })
  if (validated === LATE) return { ...unchecked, issues: null, deadline: new Deadline(0) }
  return identify(body, validated)
}
