import { OnlyonceError } from '../core/errors.ts'
import { Deadline } from '../core/retry.ts'
import { isOfClass } from '../core/thrown.ts'
import type { Onlyonce } from '../onlyonce/door.ts'
import type { Engine } from '../onlyonce/engine.ts'
import { engineOf } from '../onlyonce/onlyonce.ts'
import type { HandlerContext, WorkEnd } from '../protect/handler.ts'
import { provesNothingDone, saysInvalid } from '../protect/proof.ts'
import type { Outcome } from '../protect/transaction.ts'
import { ask, NotAdmitted, refusedReply } from './admission.ts'
import type { Answer, RunHandler } from './answer.ts'
import { bodyThatCounts } from './body.ts'
import { Context } from './context.ts'
import { FailedHooks, tellHooks } from './hooks.ts'
import { alreadyAnswered, invalidReply, refusedBody } from './invalid.ts'
import { type Asking, layerAround, layerOf, type Met } from './layers.ts'
import { Mistakes } from './mistakes.ts'
import { begunBefore, claimInTime, lateStart } from './past.ts'
import { nameOf, type ResolvedPolicy, type RoutePolicy, resolvePolicy } from './policy.ts'
import { knowRecover } from './policy-checks.ts'
import { type Prepared, prepare } from './prepare.ts'
import { problemReply } from './problem.ts'
import { errorOf, NotFinal, noting, type Ran, restOfTurn, throwBehindReply, throwSaid } from './ran.ts'
import { type HttpReply, ownReply, replayedReply, storedReply, thrownReply } from './reply.ts'
import { type BoundaryRequest, nameIn, patternOf, timeLeftMs } from './request.ts'
import { RouteThrew } from './route-threw.ts'
import { isSame, maySkip, RefusedInside, runInside } from './twice.ts'

/** The HTTP contract of one route, free of any framework. */
export class Boundary<Tx> {
  readonly policy: ResolvedPolicy
  /** Adapters read no more of a body than this. */
  readonly bodySizeMaxBytes: number
  readonly #engine: Engine<Tx>
  readonly #given: RoutePolicy
  readonly #mistakes: Mistakes
  readonly #failedHooks: FailedHooks

  /** Checks the policy; `route` is how its messages name the route, and `shared` what it has in common with other routes. */
  constructor(once: Onlyonce<Tx>, policy: RoutePolicy, route: string, shared: RoutePolicy = {}) {
    const name = nameOf(policy.operation) ?? route
    this.policy = resolvePolicy(policy, name, shared)
    this.#engine = engineOf(once)
    this.#mistakes = new Mistakes(this.#engine.observers, name)
    this.#failedHooks = new FailedHooks(name)
    // Known now: not for the first client to find.
    if (this.policy.durable !== null) this.#engine.durable.requireStore(name)
    this.#given = { ...shared, ...policy }
    this.bodySizeMaxBytes = this.policy.bodySizeMaxBytes ?? this.#engine.requests.bodySizeMaxBytes
    knowRecover(this.policy, this.#recovers, name)
  }

  /** Whether a request is to be protected at all: others cost nothing more than this question. */
  protects(request: Pick<BoundaryRequest, 'method' | 'header'>): boolean {
    const hasKey = () => this.policy.headers.some((name) => request.header(name) !== undefined)
    if (this.policy.methods.has(request.method)) return this.policy.key !== 'optional' || hasKey()
    const { methods = this.#given.profile } = this.#given
    if (methods === undefined) this.#mistakes.tellIgnoredKey(request.method, hasKey)
    return false
  }

  /**
   * Decides what becomes of a request. What the handler throws is thrown on, for the framework's own error
   * handling; everything else is an answer.
   *
   * The answer comes at once, and not in a promise, where nothing has to be waited for: above all for retries of what was
   * replayed a moment ago. Then an adapter need not hold the response back, nor keep the client's hanging up from it.
   */
  handle(request: BoundaryRequest, run: RunHandler<Tx>): Answer | Promise<Answer> {
    if (!this.protects(request)) return PASS
    const read = async () => bodyThatCounts(request, await request.body(), this.bodySizeMaxBytes)
    const met = layerAround(request, this.policy, () => this.#asking(request), read)
    if (met instanceof Promise) return met.then((one) => this.#handle(request, run, one))
    return this.#handle(request, run, met)
  }

  #handle(request: BoundaryRequest, run: RunHandler<Tx>, met: Met | undefined): Answer | Promise<Answer> {
    if (met !== undefined) return this.#twice(met, request)
    const known = this.#engine.secretKnown()
    if (known !== null) {
      return known.then(
        () => this.#handle(request, run, met),
        (error) => this.#problem(errorOf(error), { at: patternOf(request) }),
      )
    }
    let prepared: Prepared | Promise<Prepared>
    try {
      this.#engine.refuseWhenClosing()
      prepared = this.#prepare(request)
    } catch (error) {
      return this.#refusal(error, request)
    }
    const decide = (whole: Prepared) =>
      this.#decide(whole, (context) => {
        const layer = layerOf(this.#asking(request), this.policy, request, whole.body, context)
        return runInside(layer, this.policy, () => run(context))
      })
    if (!(prepared instanceof Promise)) return decide(prepared)
    return prepared.then(decide, (error) => this.#refusal(error, request))
  }

  /** A layer around this one has claimed the key already, and would be met here as another request in progress. */
  #twice(met: Met, request: BoundaryRequest): Answer {
    const { layer } = met
    const asking = this.#asking(request)
    const same = isSame(met, asking, request)
    if (same && maySkip(layer, asking)) return { answer: 'pass', context: layer.context }
    const refused = this.#problem(new OnlyonceError('layer_twice'), { at: patternOf(request) })
    layer.refusals.push(refused.reply.body)
    return refused
  }

  #asking(request: BoundaryRequest): Asking {
    const operation = nameIn(request, this.policy)
    return { by: this, engine: this.#engine, policy: this.#given, account: request.account, operation }
  }

  #decide(prepared: Prepared, run: RunHandler<Tx>): Answer | Promise<Answer> {
    const recent = this.#engine.recall(prepared.request)
    if (recent === null)
      return prepared.issues === null ? this.#execute(prepared, run) : this.#invalid(prepared)
    try {
      return this.#answer(recent, prepared)
    } catch (error) {
      return this.#problem(errorOf(error), { at: prepared.at })
    }
  }

  /** Nothing is claimed: a corrected body under the same key runs. What was done before is answered as ever. */
  async #invalid({ request, issues, at }: Prepared): Promise<Answer> {
    try {
      const known = await alreadyAnswered(this.#engine, request, this.policy)
      if (typeof known !== 'string') return this.#answer(known, { request })
      return { answer: 'reply', reply: refusedBody(issues!, known, this.policy) }
    } catch (error) {
      return this.#problem(errorOf(error), { at })
    }
  }

  /** What else goes wrong before anything is decided is the connection's or the framework's: a body that never came whole. */
  #refusal(error: unknown, request: BoundaryRequest): Answer {
    if (error instanceof OnlyonceError) return this.#problem(error, { at: patternOf(request) })
    throw isOfClass(error, RouteThrew) ? error.thrown : error
  }

  async #execute(prepared: Prepared, run: RunHandler<Tx>): Promise<Answer> {
    const ran: Ran = { admitted: false, begun: false, reply: null, ownReply: false, thrown: null }
    const { onConcurrent } = this.policy
    try {
      const decided =
        typeof onConcurrent === 'object'
          ? this.#untilDecided(prepared, run, ran, onConcurrent.waitMs)
          : this.#attempt(prepared, run, ran)
      return this.#answer(await decided, prepared)
    } catch (error) {
      if (isOfClass(error, RefusedInside)) return this.#problem(new OnlyonceError('handler_failed'))
      if (ran.thrown !== null && ran.thrown.error === error) throw error
      if (isOfClass(error, NotFinal)) return RELEASE
      const reply = invalidReply(error, this.policy)
      if (reply !== null) return ran.ownReply ? RELEASE : { answer: 'reply', reply }
      if (isOfClass(error, NotAdmitted))
        return { answer: 'reply', reply: refusedReply(error.refusal, this.policy) }
      // What an operation throws is for the framework too, as from a handler.
      if (this.policy.durable !== null && !(error instanceof OnlyonceError)) throw error
      return this.#problem(errorOf(error, ran.begun ? this.policy.protect : null), { at: prepared.at })
    }
  }

  #prepare(request: BoundaryRequest): Prepared | Promise<Prepared> {
    const { requests } = this.#engine
    const leftMs = timeLeftMs(request, this.policy.deadlineHeader, () => requests.now())
    return prepare(request, this.policy, requests, leftMs, this.bodySizeMaxBytes)
  }

  /** Waits for a duplicate that is in progress, where the route says so, as long as the handler has not run. */
  async #untilDecided(prepared: Prepared, run: RunHandler<Tx>, ran: Ran, waitMs: number): Promise<Outcome> {
    const deadline = new Deadline(Math.min(waitMs, prepared.deadline?.leftMs ?? waitMs))
    for (let tries = 0; ; tries += 1) {
      const outcome = await this.#attempt(prepared, run, ran)
      const again = outcome.outcome === 'in_progress' && ran.reply === null && (await deadline.backOff(tries))
      if (!again) return outcome
    }
  }

  /** Routes without `admit` pay nothing for it. `admit` is asked once about one request. */
  #attempt(prepared: Prepared, run: RunHandler<Tx>, ran: Ran): Promise<Outcome> {
    if (prepared.deadline?.passed) return begunBefore(this.#engine, prepared.request, this.policy)
    if (prepared.asked === null || ran.admitted) return this.#claim(prepared, run, ran)
    const wouldRun = this.#engine.wouldRun(prepared.request)
    if (!wouldRun) return this.#claim(prepared, run, ran)
    return this.#admitted(wouldRun, prepared, ran).then(() => this.#claim(prepared, run, ran))
  }

  async #admitted(
    wouldRun: Promise<boolean>,
    { asked, request, deadline }: Prepared,
    ran: Ran,
  ): Promise<void> {
    // An error of the store is no word of the operation's.
    const would = await wouldRun.catch((error) => {
      throw errorOf(error)
    })
    if (!would) return
    const maxMs = Math.min(request.deadlineMs, deadline?.leftMs ?? request.deadlineMs)
    const refusal = await ask(this.policy.admit!, asked!, maxMs, ran)
    if (refusal !== null) {
      const protection = this.policy.durable === null ? this.policy.protect : 'operation'
      const { observers } = this.#engine
      observers.emit({ signal: 'not_admitted', protection, id: request.id, code: refusal.code })
      throw new NotAdmitted(refusal)
    }
    ran.admitted = true
  }

  #claim(prepared: Prepared, run: RunHandler<Tx>, ran: Ran): Promise<Outcome> {
    const { request, input, deadline } = prepared
    const { durable, bounds } = this.policy
    // Its body was read, or it was asked about, meanwhile. Closing waits for what had begun by then, and not for this.
    this.#engine.refuseWhenClosing()
    if (deadline?.passed) return begunBefore(this.#engine, request, this.policy)
    if (durable !== null) {
      const { requests } = this.#engine
      const notNow = (status: number) => this.policy.final(status) === 'retry'
      const leased = requests.leased(request, bounds)
      const asked = requests.durable(leased, input!, bounds.deadlineMs ?? null, notNow, deadline)
      return this.#engine.run(asked, durable, asItIs, 'refuse')
    }
    if (this.policy.protect === 'transaction') {
      const work = async (tx: Tx) => {
        const late = lateStart(deadline)
        if (late !== null) throw late.error
        const context = new Context(request.id, tx, UNOWNED, true, prepared.valid)
        const reply = await noting(ran, run, context)
        await restOfTurn()
        throwSaid(ran, context, reply)
        throwBehindReply(context)
        const stored = storedReply(reply, this.policy)
        if (context.nothingDone || this.policy.final(reply.status) === 'retry')
          throw new NotFinal(reply.status)
        return stored
      }
      return this.#engine.transaction(request, work, asItIs, 'refuse')
    }
    // Named by its route alone, it is known from the first request on.
    if (this.policy.recover !== null) this.#recovers.add(request.id.operation, this.policy.recover)
    const leased = this.#engine.requests.leased(claimInTime(prepared), bounds)
    const work = async (owner: HandlerContext) =>
      lateStart(deadline) ??
      this.#end(new Context<Tx>(request.id, null, owner, false, prepared.valid), run, ran)
    return this.#engine.handler(leased, work, asItIs, 'refuse')
  }

  get #recovers() {
    return this.#engine.upkeep.recovery.recovers
  }

  /** How a handler ended, as it is to be stored. */
  async #end(context: Context<Tx>, run: RunHandler<Tx>, ran: Ran): Promise<WorkEnd> {
    try {
      const reply = await noting(ran, run, context)
      throwSaid(ran, context, reply)
      if (context.nothingDone || this.policy.final(reply.status) === 'retry') {
        return { end: 'not_executed', error: new NotFinal(reply.status), byStatus: !context.nothingDone }
      }
      return { end: 'reply', reply: storedReply(reply, this.policy), thrown: context.thrown }
    } catch (error) {
      if (saysInvalid(error)) return { end: 'invalid', error }
      if (provesNothingDone(error)) return { end: 'not_executed', error }
      // The framework makes a response of it that we do not see; a replay says that it failed.
      const reply = thrownReply(this.#problem(new OnlyonceError('handler_failed')).reply, this.policy)
      return { end: 'threw', error, reply }
    }
  }

  #answer(outcome: Outcome, { request }: Pick<Prepared, 'request'>): Answer {
    const answer = this.#answerTo(outcome)
    if (answer.answer === 'reply')
      tellHooks(this.policy, outcome, request.id, answer.reply, this.#failedHooks.tell)
    return answer
  }

  #answerTo(outcome: Outcome): Answer {
    switch (outcome.outcome) {
      case 'executed':
        return this.policy.durable === null ? RELEASE : { answer: 'reply', reply: ownReply(outcome.reply) }
      case 'replayed':
        return { answer: 'reply', reply: replayedReply(outcome.reply) }
      case 'in_progress': {
        const status = this.policy.onConcurrent === 'accepted' ? 202 : 409
        const { retryAfterMs } = outcome
        return this.#problem(new OnlyonceError('in_progress'), { retryAfterMs, status })
      }
      case 'key_reused':
        return this.#problem(new OnlyonceError('key_reused'))
      case 'unknown':
        return this.#problem(new OnlyonceError('outcome_pending'), { retryAfterMs: outcome.retryAfterMs })
      case 'parked':
        return this.#problem(new OnlyonceError('parked'))
      default:
        return outcome satisfies never
    }
  }

  #problem(
    error: OnlyonceError,
    options?: { readonly retryAfterMs?: number; readonly status?: number; readonly at?: string | null },
  ): { readonly answer: 'reply'; readonly reply: HttpReply } {
    this.#mistakes.tell(error, this.policy.operation ?? options?.at ?? null)
    return { answer: 'reply', reply: problemReply(error, this.policy, options) }
  }
}

const PASS: Answer = { answer: 'pass', context: null }
const RELEASE: Answer = { answer: 'release' }
/** A transaction has no lease that could be lost. */
const UNOWNED = { signal: new AbortController().signal }
const asItIs = (outcome: Outcome) => outcome
