import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type {
  HandlerCall,
  IssueKeyCall,
  OnlyonceOptions,
  ProtectedCall,
  RunCall,
  TransactionCall,
} from './door.ts'
import { OnlyonceError } from './errors.ts'
import { matches, type Preimage, prepareInput, sign } from './fingerprint/index.ts'
import { type IssuedKey, Issuer } from './issuer.ts'
import { checkKey, keyRules, type ResolvedKeyRules, scopeOf } from './key/index.ts'
import { LIMITS } from './limits.ts'
import type { HandlerRequest } from './protect/handler.ts'
import { isNotNow } from './protect/not-now.ts'
import type { OperationRequest } from './protect/run-operation.ts'
import { ISOLATIONS } from './protect/step-options.ts'
import type { TransactionRequest } from './protect/transaction.ts'
import type { RecordId } from './record/index.ts'
import type { Deadline } from './retry.ts'
import { type KeyRing, keyRing } from './ring.ts'
import type { Isolation } from './store/contract.ts'
import { encodeInput } from './value.ts'

type Bounds = Pick<TransactionCall, 'retention_ms' | 'deadline_ms' | 'isolation' | 'exclusive' | 'strict_tx'>
type Leases = Pick<HandlerCall, 'deadline_ms' | 'lease_ms' | 'in_progress_max_ms' | 'rerunnable'>

/** Turns calls into requests: everything that a caller can get wrong is refused here, before anything runs. */
export class Requests {
  readonly #ring: KeyRing
  readonly #issuer: Issuer
  readonly #rules: ResolvedKeyRules
  readonly #rules_issued: ResolvedKeyRules
  /** To look at a key is not to use it: what was used before the rules changed can still be looked at. */
  readonly #rules_to_look: ResolvedKeyRules
  readonly #retention_ms: number
  readonly #strict_tx: boolean
  /** How long one call may try where it does not say so itself. */
  readonly deadline_ms: number
  /** How large the body of a request may be, where its route does not say so itself. */
  readonly body_size_max_bytes: number
  /** Who we are in the history: a person can find the process by it. */
  readonly owner = `${hostname()}/${process.pid}/${randomBytes(3).toString('hex')}`

  constructor(
    options: Pick<
      OnlyonceOptions<unknown>,
      'secret' | 'keys' | 'retention_ms' | 'deadline_ms' | 'body_size_max_bytes' | 'strict_tx' | 'clock'
    >,
  ) {
    this.#ring = keyRing(options.secret, 'fingerprint')
    this.#rules = keyRules(options.keys ?? {})
    this.#rules_issued = keyRules({ ...options.keys, issued: 'required' })
    this.#rules_to_look = keyRules({ ...options.keys, issued: 'accepted' })
    this.#retention_ms = positive('retention_ms', options.retention_ms ?? LIMITS.retention_ms)
    this.deadline_ms = positive('deadline_ms', options.deadline_ms ?? LIMITS.deadline_ms)
    this.body_size_max_bytes = positive(
      'body_size_max_bytes',
      options.body_size_max_bytes ?? LIMITS.body_size_max_bytes,
    )
    this.#strict_tx = options.strict_tx === true
    this.#issuer = new Issuer(this.#ring, { clock: options.clock, retention_ms: this.#retention_ms })
  }

  /** The ids of the keys that fingerprints are made with, the current one first. */
  get key_ids(): readonly string[] {
    return this.#ring.key_ids
  }

  digestOf(key_id: string): string {
    return this.#ring.digestOf(key_id)
  }

  /** How long records are kept where a call does not say so itself. */
  get retention_ms(): number {
    return this.#retention_ms
  }

  /** By the clock of the process, or the one that was given in its place. Decides nothing about records. */
  now(): number {
    return this.#issuer.now()
  }

  /** The rules for keys; where only issued ones are asked for, those. */
  rules(issued: 'required' | undefined): ResolvedKeyRules {
    return issued === 'required' ? this.#rules_issued : this.#rules
  }

  transaction(call: TransactionCall): TransactionRequest {
    const id = idOf(call, this.#rules)
    return this.identified(id, call, prepareInput({ operation: id.operation, input: call.input }))
  }

  /** The same for an id that was checked, and a request that was read, somewhere else. */
  identified(id: RecordId, call: Bounds, preimage: Preimage, rerun = true): TransactionRequest {
    const deadline_ms = positive('deadline_ms', call.deadline_ms ?? this.deadline_ms)
    const lapsed = this.#issuer.lapseOf(id, deadline_ms)
    return {
      id,
      owner: this.owner,
      fingerprint: sign(this.#ring, preimage),
      trace: null,
      matches: (stored) => matches(this.#ring, preimage, stored),
      lapsed,
      retention_ms: this.#issuer.retentionOf(
        id,
        positive('retention_ms', call.retention_ms ?? this.#retention_ms),
      ),
      deadline_ms,
      isolation: isolationOf(call.isolation),
      exclusive: call.exclusive === true,
      strict_tx: call.strict_tx ?? this.#strict_tx,
      rerun,
    }
  }

  handler(call: HandlerCall): HandlerRequest {
    return this.leased(this.transaction(call), call)
  }

  /** A request for a handler: with a lease in place of a transaction. */
  leased(request: TransactionRequest, call: Leases): HandlerRequest {
    const { id, owner, fingerprint, trace, matches, lapsed, retention_ms, deadline_ms } = request
    const { lease_ms = LIMITS.lease_ms, in_progress_max_ms = LIMITS.in_progress_max_ms } = call
    return {
      id,
      owner,
      fingerprint,
      trace,
      matches,
      lapsed,
      retention_ms,
      deadline_ms,
      // A lease that outlasts the time for the work would only keep others waiting.
      lease_ms: Math.min(positive('lease_ms', lease_ms), positive('in_progress_max_ms', in_progress_max_ms)),
      in_progress_max_ms,
      save_wait_ms: positive('deadline_ms', call.deadline_ms ?? this.deadline_ms),
      rerunnable: call.rerunnable === true,
    }
  }

  operation(name: string, call: RunCall<unknown>): OperationRequest {
    const leased = this.handler({ ...call, operation: name })
    return this.durable(leased, encodeInput(call.input), call.deadline_ms ?? null, isNotNow)
  }

  /** A request for an operation: with its input, so that others can go on with it. */
  durable(
    leased: HandlerRequest,
    input: Buffer,
    deadline_given_ms: number | null,
    notNow: (status: number) => boolean,
    client_deadline: Deadline | null = null,
  ): OperationRequest {
    const { rerunnable: _, save_wait_ms: __, ...rest } = leased
    return { ...rest, input, deadline_given_ms, notNow, client_deadline }
  }

  idToLookAt(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>): RecordId {
    return idOf(call, this.#rules_to_look)
  }

  issueKey({ account, operation, expires_in_ms }: IssueKeyCall): IssuedKey {
    if (expires_in_ms !== undefined) positive('expires_in_ms', expires_in_ms)
    return this.#issuer.issue(scopeOf(account, operation), expires_in_ms)
  }
}

function idOf(call: Pick<ProtectedCall, 'account' | 'operation' | 'key'>, rules: ResolvedKeyRules): RecordId {
  const { account, operation } = scopeOf(call.account, call.operation)
  return { account, operation, key: checkKey(call.key, rules) }
}

function isolationOf(given: Isolation | undefined): Isolation | null {
  if (given === undefined || ISOLATIONS.includes(given)) return given ?? null
  throw new OnlyonceError('option_invalid', { detail: `isolation must be one of ${ISOLATIONS.join(', ')}.` })
}

export function positive(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new OnlyonceError('option_invalid', {
      detail: `${name} must be a whole number${name.endsWith('_ms') ? ' of milliseconds' : ''}, at least 1.`,
    })
  }
  return value
}
