import { OnlyonceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isUsedBy, type OptionNames, refuseUnknown, unusedOption } from '../core/options.ts'
import { type CompiledFields, compileFields, type FingerprintFields } from '../fingerprint/index.ts'
import type { Operation } from '../operation/operation.ts'
import type { Recover } from '../protect/recover.ts'
import type { Isolation } from '../store/contract.ts'
import type { Admit } from './admission.ts'
import { type Finality, type FinalRules, finalRules } from './final.ts'
import type { ConflictTold, ReplayTold } from './hooks.ts'
import type { KeyOf } from './key-source.ts'
import type { OperationSource } from './operation-input.ts'
import {
  checkRecover,
  headerNames,
  methodsOf,
  namingRoute,
  oneOf,
  type Refuse,
  whole,
} from './policy-checks.ts'
import { PROFILES, type Profile } from './profiles.ts'
import { isStandardSchema, type StandardSchema } from './validate.ts'

export type { StandardSchema } from './validate.ts'

/** What a route asks for. Everything has a default; all of it is checked once, when the route is made. */
export interface RoutePolicy {
  /**
   * The name of what the route does, such as `payments.create`. Default: method and route. Or a durable operation: then it
   * answers the request, and no handler is run.
   */
  readonly operation?: string | Operation<never, unknown>
  /** What a durable operation is given. Default: the JSON body. What it throws goes to the framework, and claims no key. */
  readonly input?: (source: OperationSource) => unknown
  /** `handler`: claim, run, store. `transaction`: the handler's effects are all in the store's database. */
  readonly protect?: 'handler' | 'transaction'
  /** Which methods are protected; others pass untouched. Default: POST and PATCH. */
  readonly methods?: readonly string[]
  /**
   * `issued` accepts only keys that `once.issueKey` handed out. A function reads the key from elsewhere than a header: a member of the
   * body, the id of a message. Default: `required`.
   */
  readonly key?: 'required' | 'optional' | 'issued' | KeyOf
  /** The header that carries the key, or several, of which the first that is there counts. */
  readonly header?: string | readonly string[]
  /** Whether a key belongs to an operation of an account, or to the account as a whole. Default: `operation`. */
  readonly scope?: 'operation' | 'account'
  readonly retentionMs?: number
  /** All attempts of one request together. */
  readonly deadlineMs?: number
  /** A header with the time after which the client no longer wants the request to start. */
  readonly deadlineHeader?: string
  /**
   * What of a JSON body counts, and what of a body is compared: `raw` as it was sent, `parsed` as a parser made it, `multipart` the
   * parts of a form, and nothing but forms. Default: forms by their parts, everything else as it was sent.
   */
  readonly fingerprint?: FingerprintFields & { readonly body?: 'raw' | 'parsed' | 'multipart' }
  /** A schema (Standard Schema: zod, valibot, arktype) that the JSON body has to fit. Asked before the key is claimed. */
  readonly validate?: StandardSchema
  /** Which replies are stored and which let the request run again: by status (`404`) or class (`5xx`). */
  readonly final?: Readonly<Record<string, Finality>>
  /** What a duplicate hears while the first is in progress. Default: `conflict`, which is 409. */
  readonly onConcurrent?: 'conflict' | 'accepted' | { readonly waitMs: number }
  readonly leaseMs?: number
  readonly inProgressMaxMs?: number
  /** You say that running the handler twice does no harm: then one that fails, or whose process dies, runs again. */
  readonly rerunnable?: boolean
  /** Finds out what became of a handler that gave no outcome. Known from the start where the route has an `operation`. */
  readonly recover?: Recover
  readonly isolation?: Isolation
  readonly exclusive?: boolean
  /** Requests with a larger body are refused: a body is read whole to fingerprint it. Default: that of `onlyonce()`. */
  readonly bodySizeMaxBytes?: number
  /** A transaction whose handler sends no statement on `tx` is the error `transaction_unused`, and its record is unknown. */
  readonly strictTx?: boolean
  /** Replies with a larger body are not kept; the request still never runs again. */
  readonly replySizeMaxBytes?: number
  /**
   * Whether a request may run now: rate and velocity limits, overload. Asked only about one that would run: a replay, a reused
   * key, and what is in progress or unknown are answered as ever, and count against nothing; nor is it asked again about
   * an attempt that has begun and whose owner vanished. A refused request claims no key and leaves no record; its answer
   * is never stored. Two first requests with one key at the same time may both be admitted: only one of them runs.
   * What the function throws goes to the framework, like what a handler throws, and claims no key either.
   */
  readonly admit?: Admit
  /** Headers that are stored and replayed beside the usual ones. */
  readonly replyHeaders?: readonly string[]
  /** Told when a stored reply is sent again. Its answer waits for no hook, and what a hook throws is a warning of the process. */
  readonly onReplay?: (told: ReplayTold) => unknown
  /** Told when a known key is answered without a reply: in progress, reused for another request, unknown or parked. As `onReplay`. */
  readonly onConflict?: (told: ConflictTold) => unknown
  /** Sends the reply while it is made, before it is durable. Never with `transaction`. */
  readonly stream?: boolean
  /** The contract of another API as a whole; single options still override it. */
  readonly profile?: Profile
  /** What the `type` of a problem begins with. */
  readonly problemBase?: string
}

export interface ResolvedPolicy {
  readonly operation: string | null
  readonly durable: Operation<unknown, unknown> | null
  readonly input: ((source: OperationSource) => unknown) | null
  readonly protect: 'handler' | 'transaction' | 'operation'
  readonly methods: ReadonlySet<string>
  readonly key: 'required' | 'optional' | 'issued'
  /** Reads the key from elsewhere than a header; null for most routes. */
  readonly keyOf: KeyOf | null
  readonly headers: readonly string[]
  readonly scope: 'operation' | 'account'
  readonly deadlineHeader: string | null
  /** Null where nothing is said: forms count by their parts then, and everything else as it was sent. */
  readonly body: 'raw' | 'parsed' | 'multipart' | null
  /** Null where the front door decides. */
  readonly bodySizeMaxBytes: number | null
  readonly fields: CompiledFields | undefined
  readonly validate: StandardSchema | null
  readonly final: FinalRules
  readonly onConcurrent: 'conflict' | 'accepted' | { readonly waitMs: number }
  readonly admit: Admit | null
  readonly onReplay: ((told: ReplayTold) => unknown) | null
  readonly onConflict: ((told: ConflictTold) => unknown) | null
  readonly recover: Recover | null
  readonly replySizeMaxBytes: number
  readonly replyHeaders: ReadonlySet<string>
  readonly stream: boolean
  readonly errors: 'problem' | 'stripe'
  readonly problemBase: string
  /** Passed on to the engine as they are; those left out get its own defaults. */
  readonly bounds: Pick<RoutePolicy, (typeof BOUNDS)[number]>
}

/**
 * `route` is how messages name it. `shared` are defaults that several routes are given: what the protection of this one makes no use of is
 * for others, while in its own policy it is a mistake.
 */
export function resolvePolicy(given: RoutePolicy, route: string, shared: RoutePolicy = {}): ResolvedPolicy {
  const refuse = (detail: string): never => {
    throw new OnlyonceError('option_invalid', { detail: `${route}: ${detail}` })
  }
  refuseUnknown(`${route}: its policy`, { ...shared, ...given }, POLICY_NAMES)
  const profile = given.profile ?? shared.profile
  const preset = profile === undefined ? undefined : PROFILES[profile]
  if (profile !== undefined && preset === undefined) {
    refuse(`profile is one of ${Object.keys(PROFILES).join(', ')}.`)
  }
  const durable = durableOf(refuse, given.operation)
  const asked = given.protect ?? shared.protect ?? 'handler'
  const protect = durable === null ? oneOf(refuse, 'protect', asked, ['handler', 'transaction']) : 'operation'
  const unused = unusedOption(protect, given)
  if (unused !== null) refuse(unused)
  const policy: RoutePolicy = { ...usedBy(protect, { ...preset?.policy, ...shared }), ...given }
  if (policy.input !== undefined && typeof policy.input !== 'function') refuse('input is a function.')
  if (durable !== null && policy.scope === 'account')
    refuse('a durable operation has keys of its own, so scope cannot be account.')
  if (policy.key === 'issued' && policy.scope === 'account') {
    refuse('an issued key belongs to one operation, so scope cannot be account.')
  }
  if (policy.recover !== undefined) checkRecover(refuse, policy)
  if (policy.admit !== undefined && typeof policy.admit !== 'function') refuse('admit is a function.')
  if (policy.validate !== undefined && !isStandardSchema(policy.validate)) refuse('validate is a schema.')
  const { leaseMs, inProgressMaxMs, retentionMs, deadlineMs } = policy
  for (const [name, value] of Object.entries({ leaseMs, inProgressMaxMs, retentionMs, deadlineMs })) {
    if (value !== undefined) whole(refuse, name, value)
  }
  return {
    operation: nameOf(policy.operation) ?? null,
    durable,
    input: policy.input ?? null,
    protect,
    methods: methodsOf(refuse, policy.methods ?? ['POST', 'PATCH']),
    ...keyOptionOf(refuse, policy),
    headers: headerNames(refuse, 'header', policy.header ?? 'Idempotency-Key'),
    scope: oneOf(refuse, 'scope', policy.scope ?? 'operation', ['operation', 'account']),
    deadlineHeader:
      policy.deadlineHeader === undefined
        ? null
        : headerNames(refuse, 'deadlineHeader', policy.deadlineHeader)[0]!,
    body:
      policy.fingerprint?.body === undefined
        ? null
        : oneOf(refuse, 'fingerprint.body', policy.fingerprint.body, BODIES),
    bodySizeMaxBytes:
      policy.bodySizeMaxBytes === undefined
        ? null
        : whole(refuse, 'bodySizeMaxBytes', policy.bodySizeMaxBytes),
    fields: fieldsOf(route, policy.fingerprint),
    validate: policy.validate ?? null,
    final: finalRules(policy.final ?? {}, policy.rerunnable === true ? 'rerunnable' : protect, refuse),
    onConcurrent: onConcurrentOf(route, refuse, policy.onConcurrent ?? 'conflict'),
    admit: policy.admit ?? null,
    onReplay: hookOf(refuse, 'onReplay', policy.onReplay),
    onConflict: hookOf(refuse, 'onConflict', policy.onConflict),
    recover: policy.recover ?? null,
    replySizeMaxBytes: whole(
      refuse,
      'replySizeMaxBytes',
      policy.replySizeMaxBytes ?? LIMITS.replySizeMaxBytes,
    ),
    replyHeaders: new Set(headerNames(refuse, 'replyHeaders', policy.replyHeaders ?? [])),
    stream: policy.stream === true,
    errors: preset?.errors ?? 'problem',
    problemBase: policy.problemBase ?? PROBLEM_BASE,
    bounds: boundsOf(policy),
  }
}

export const PROBLEM_BASE = 'https://onlyonce.dev/problems/'

export const POLICY_NAMES: OptionNames<RoutePolicy> = {
  operation: true,
  input: true,
  protect: true,
  methods: true,
  key: true,
  header: true,
  scope: true,
  retentionMs: true,
  deadlineMs: true,
  deadlineHeader: true,
  fingerprint: true,
  validate: true,
  final: true,
  onConcurrent: true,
  leaseMs: true,
  inProgressMaxMs: true,
  rerunnable: true,
  recover: true,
  isolation: true,
  exclusive: true,
  strictTx: true,
  admit: true,
  onReplay: true,
  onConflict: true,
  bodySizeMaxBytes: true,
  replySizeMaxBytes: true,
  replyHeaders: true,
  stream: true,
  profile: true,
  problemBase: true,
}

/** The name of an operation, however it is given. */
export function nameOf(operation: RoutePolicy['operation']): string | undefined {
  return typeof operation === 'object' ? operation.name : operation
}

/** A function gives every request a key, so none passes without one; a header beside it would never be read. */
function keyOptionOf(
  refuse: Refuse,
  { key = 'required', header }: RoutePolicy,
): Pick<ResolvedPolicy, 'key' | 'keyOf'> {
  if (typeof key !== 'function')
    return { key: oneOf(refuse, 'key', key, ['required', 'optional', 'issued']), keyOf: null }
  if (header !== undefined) refuse('header is not read where key is a function.')
  return { key: 'required', keyOf: key }
}

function hookOf<Hook>(refuse: Refuse, name: string, hook: Hook | undefined): Hook | null {
  if (hook !== undefined && typeof hook !== 'function') refuse(`${name} is a function.`)
  return hook ?? null
}

/** An operation brings its own protection, and its workers find it by its name. */
function durableOf(refuse: Refuse, operation: RoutePolicy['operation']): Operation<unknown, unknown> | null {
  if (typeof operation !== 'object') return null
  if (typeof operation?.run !== 'function') refuse('operation is a name, or what operation() has made.')
  return operation as Operation<unknown, unknown>
}

function usedBy(protect: ResolvedPolicy['protect'], shared: RoutePolicy): RoutePolicy {
  return Object.fromEntries(Object.entries(shared).filter(([name]) => isUsedBy(protect, name)))
}

const BODIES = ['raw', 'parsed', 'multipart'] as const

function fieldsOf(route: string, fingerprint: RoutePolicy['fingerprint']): CompiledFields | undefined {
  if (fingerprint === undefined) return undefined
  refuseUnknown(`${route}: fingerprint`, fingerprint, FINGERPRINT)
  const { body: _, ...fields } = fingerprint
  return Object.keys(fields).length === 0 ? undefined : namingRoute(route, () => compileFields(fields))
}

const FINGERPRINT: OptionNames<NonNullable<RoutePolicy['fingerprint']>> = {
  include: true,
  exclude: true,
  body: true,
}

function onConcurrentOf(route: string, refuse: Refuse, given: NonNullable<RoutePolicy['onConcurrent']>) {
  if (given === 'conflict' || given === 'accepted') return given
  if (typeof given !== 'object' || given === null) {
    return refuse('onConcurrent is conflict, accepted or { waitMs }.')
  }
  refuseUnknown(`${route}: onConcurrent`, given, { waitMs: true })
  return { waitMs: whole(refuse, 'onConcurrent.waitMs', given.waitMs) }
}

const BOUNDS = [
  'retentionMs',
  'deadlineMs',
  'leaseMs',
  'inProgressMaxMs',
  'rerunnable',
  'isolation',
  'exclusive',
  'strictTx',
] as const

function boundsOf(policy: RoutePolicy): ResolvedPolicy['bounds'] {
  const given = BOUNDS.filter((name) => policy[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, policy[name]]))
}
