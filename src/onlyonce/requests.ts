import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { requireList } from '../core/options.ts'
import type { Deadline } from '../core/retry.ts'
import type { KeyRing } from '../core/ring.ts'
import { matches, type Preimage, prepareInput, sign } from '../fingerprint/index.ts'
import { businessKey, checkKey, keyRules, type ResolvedKeyRules, scopeOf } from '../key/index.ts'
import type { OperationRequest } from '../operation/run-operation.ts'
import { ISOLATIONS } from '../operation/step-options.ts'
import type { HandlerRequest } from '../protect/handler.ts'
import { isNotNow } from '../protect/not-now.ts'
import type { TransactionRequest } from '../protect/transaction.ts'
import type { RecordId } from '../record/index.ts'
import { encodeInput } from '../record/value.ts'
import type { Isolation, MadeKey } from '../store/contract.ts'
import type {
  ExecuteCall,
  IssueKeyCall,
  KeyName,
  OnlyonceOptions,
  ProtectedCall,
  RunCall,
  TransactionCall,
} from './door.ts'
import { type IssuedKey, Issuer } from './issuer.ts'
import { inProduction, secretRing } from './made-secret.ts'

type Bounds = Pick<TransactionCall, 'retentionMs' | 'deadlineMs' | 'isolation' | 'exclusive' | 'strictTx'>
type Leases = Pick<ExecuteCall, 'deadlineMs' | 'leaseMs' | 'inProgressMaxMs' | 'rerunnable'>

/** Turns calls into requests: everything that a caller can get wrong is refused here, before anything runs. */
export class Requests {
  readonly #ring: KeyRing
  /** A secret was given. */
  readonly hasOwnSecret: boolean
  /** The secret that the store keeps, once it is known. */
  made: MadeKey | null = null
  readonly #newIssuer: () => Issuer
  #issuer: Issuer
  readonly #rules: ResolvedKeyRules
  readonly #rulesIssued: ResolvedKeyRules
  /** To look at a key is not to use it: what was used before the rules changed can still be looked at. */
  readonly #rulesToLook: ResolvedKeyRules
  readonly #retentionMs: number
  readonly #strictTx: boolean
  /** How long one call may try where it does not say so itself. */
  readonly deadlineMs: number
  /** How large the body of a request may be, where its route does not say so itself. */
  readonly bodySizeMaxBytes: number
  /** Who we are in the history: a person can find the process by it. */
  readonly owner = `${hostname()}/${process.pid}/${randomBytes(3).toString('hex')}`

  constructor(
    options: Pick<
      OnlyonceOptions<unknown>,
      | 'secret'
      | 'encryption'
      | 'keys'
      | 'retentionMs'
      | 'deadlineMs'
      | 'bodySizeMaxBytes'
      | 'strictTx'
      | 'clock'
    >,
  ) {
    this.#ring = secretRing(options)
    this.hasOwnSecret = !this.#ring.isEmpty
    this.#rules = keyRules(options.keys ?? {})
    this.#rulesIssued = keyRules({ ...options.keys, issued: 'required' })
    this.#rulesToLook = keyRules({ ...options.keys, issued: 'accepted' })
    this.#retentionMs = positive('retentionMs', options.retentionMs ?? LIMITS.retentionMs)
    this.deadlineMs = positive('deadlineMs', options.deadlineMs ?? LIMITS.deadlineMs)
    this.bodySizeMaxBytes = positive('bodySizeMaxBytes', options.bodySizeMaxBytes ?? LIMITS.bodySizeMaxBytes)
    this.#strictTx = options.strictTx === true
    this.#newIssuer = () => new Issuer(this.#ring, { clock: options.clock, retentionMs: this.#retentionMs })
    this.#issuer = this.#newIssuer()
  }

  /** No secret was given, and the one that the store keeps is not known yet: no request can be made before a start. */
  get lacksSecret(): boolean {
    return this.#ring.isEmpty
  }

  /**
   * Takes the secret that the store keeps: as the current one where no other was given, else for records that were made with it. Everyone who
   * can read the database can read it, so in production no key counts as issued that was signed with it.
   */
  learn(made: MadeKey): void {
    this.made = made
    this.#ring.add(made.keyId, made.bytes)
    if (!this.hasOwnSecret || !inProduction()) this.#issuer = this.#newIssuer()
  }

  /** The ids of the keys that fingerprints are made with, the current one first. */
  get keyIds(): readonly string[] {
    return this.#ring.keyIds
  }

  digestOf(keyId: string): string {
    return this.#ring.digestOf(keyId)
  }

  /** How long records are kept where a call does not say so itself. */
  get retentionMs(): number {
    return this.#retentionMs
  }

  /** By the clock of the process, or the one that was given in its place. Decides nothing about records. */
  now(): number {
    return this.#issuer.now()
  }

  /** The rules for keys; where only issued ones are asked for, those. */
  rules(issued: 'required' | undefined): ResolvedKeyRules {
    return issued === 'required' ? this.#rulesIssued : this.#rules
  }

  transaction(call: TransactionCall): TransactionRequest {
    const id = idOf(call, this.#rules)
    return this.identified(id, call, prepareInput({ operation: id.operation, input: call.input }))
  }

  /** The same for an id that was checked, and a request that was read, somewhere else. */
  identified(id: RecordId, call: Bounds, preimage: Preimage, rerun = true): TransactionRequest {
    const deadlineMs = positive('deadlineMs', call.deadlineMs ?? this.deadlineMs)
    const lapsed = this.#issuer.lapseOf(id, deadlineMs)
    return {
      id,
      owner: this.owner,
      fingerprint: sign(this.#ring, preimage),
      trace: null,
      matches: (stored) => matches(this.#ring, preimage, stored),
      lapsed,
      retentionMs: this.#issuer.retentionOf(
        id,
        positive('retentionMs', call.retentionMs ?? this.#retentionMs),
      ),
      deadlineMs,
      isolation: isolationOf(call.isolation),
      exclusive: call.exclusive === true,
      strictTx: call.strictTx ?? this.#strictTx,
      rerun,
    }
  }

  handler(call: ExecuteCall): HandlerRequest {
    return this.leased(this.transaction(call), call)
  }

  /** A request for a handler: with a lease in place of a transaction. */
  leased(request: TransactionRequest, call: Leases): HandlerRequest {
    const { id, owner, fingerprint, trace, matches, lapsed, retentionMs, deadlineMs } = request
    const { leaseMs = LIMITS.leaseMs, inProgressMaxMs = LIMITS.inProgressMaxMs } = call
    return {
      id,
      owner,
      fingerprint,
      trace,
      matches,
      lapsed,
      retentionMs,
      deadlineMs,
      // A lease that outlasts the time for the work would only keep others waiting.
      leaseMs: Math.min(positive('leaseMs', leaseMs), positive('inProgressMaxMs', inProgressMaxMs)),
      inProgressMaxMs,
      saveWaitMs: positive('deadlineMs', call.deadlineMs ?? this.deadlineMs),
      rerunnable: call.rerunnable === true,
    }
  }

  operation<Input>(name: string, call: RunCall<Input>): OperationRequest {
    const leased = this.handler({ ...call, operation: name } as ExecuteCall)
    return this.durable(leased, encodeInput(call.input), call.deadlineMs ?? null, isNotNow)
  }

  /** A request for an operation: with its input, so that others can go on with it. */
  durable(
    leased: HandlerRequest,
    input: Buffer,
    deadlineGivenMs: number | null,
    notNow: (status: number) => boolean,
    clientDeadline: Deadline | null = null,
  ): OperationRequest {
    const { rerunnable: _, saveWaitMs: __, ...rest } = leased
    return { ...rest, input, deadlineGivenMs, notNow, clientDeadline }
  }

  idToLookAt(call: KeyName | ProtectedCall): RecordId {
    return idOf(call, this.#rulesToLook)
  }

  issueKey({ account, operation, expiresInMs }: IssueKeyCall): IssuedKey {
    if (expiresInMs !== undefined) positive('expiresInMs', expiresInMs)
    if (this.lacksSecret) {
      refuse(
        'No secret was given, and the one of the store is not read yet. Await once.start() before a key is issued.',
      )
    }
    return this.#issuer.issue(scopeOf(account, operation), expiresInMs)
  }
}

function idOf(call: KeyName | ProtectedCall, rules: ResolvedKeyRules): RecordId {
  const { account, operation } = scopeOf(call.account, call.operation)
  const key = 'keyFrom' in call && call.keyFrom !== undefined ? keyOf(operation, call) : call.key
  return { account, operation, key: checkKey(key, rules) }
}

/** The key that `keyFrom` makes. */
function keyOf(operation: string, { key, keyFrom, input }: ProtectedCall): string {
  if (key !== undefined) refuse('Pass key or keyFrom, not both.')
  requireList('keyFrom', keyFrom)
  const members = (keyFrom as readonly string[]).map((member) => {
    const has = typeof input === 'object' && input !== null && Object.hasOwn(input, member)
    const value = has ? (input as Record<string, unknown>)[member] : undefined
    if (value !== undefined && value !== null) return value as string
    const detail = `keyFrom names ${JSON.stringify(member)}, and the input has no such member.`
    throw new OnlyonceError('business_key_invalid', { detail })
  })
  return businessKey(operation, ...members)
}

function isolationOf(given: Isolation | undefined): Isolation | null {
  if (given === undefined || ISOLATIONS.includes(given)) return given ?? null
  return refuse(`isolation must be one of ${ISOLATIONS.join(', ')}.`)
}

function refuse(detail: string): never {
  throw new OnlyonceError('option_invalid', { detail })
}

export function positive(name: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new OnlyonceError('option_invalid', {
      detail: `${name} must be a whole number${name.endsWith('Ms') ? ' of milliseconds' : ''}, at least 1.`,
    })
  }
  return value
}
