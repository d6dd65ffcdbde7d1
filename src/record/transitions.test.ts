import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type Claimant,
  complete,
  decide,
  doubt,
  EDGES,
  endLook,
  erase,
  expire,
  extend,
  giveUp,
  type LookEnd,
  mayAnswer,
  mayForget,
  type OnceRecord,
  owns,
  park,
  parkByOperator,
  type Reply,
  release,
  reserve,
  type State,
  settleAsExecuted,
  settleAsNotExecuted,
  settleWithReply,
  takeLook,
  type Unknown,
  unpark,
} from './index.ts'

const REPLY: Reply = { status: 201, headers: [], body: Buffer.from('{}'), schema: 1, sealedBy: null }
const FAILURE = { code: 'boom', message: 'it broke' }
const RETENTION_MS = 1_000
const LEASE_MS = 100
const GRACE_MS = 50

const KINDS = ['transaction', 'operation', 'handler', 'handler_rerunnable', 'handler_recoverable'] as const

function claimant(n: number, request: number, kind: Claimant['kind'] = 'handler'): Claimant {
  return {
    kind,
    attemptId: `attempt-${n}`,
    owner: `owner-${n}`,
    fingerprint: { keyId: 'k', digest: Buffer.from([request]) },
    trace: `trace-${n}`,
  }
}

const sameRequest = (record: OnceRecord, who: Claimant) =>
  record.fingerprint.keyId === '' || record.fingerprint.digest.equals(who.fingerprint.digest)

/**
 * An independent account of the life of a record, written as a table of plain facts and not with the functions
 * under test: who owns it, whether the work may have happened, and what may still be answered.
 */
interface Model {
  state: State | 'none'
  fence: number
  request: number
  leaseUntil: number
  expiresAt: number
  /** An operator has parked it: its owner has no say any more. */
  decided: boolean
  /** When somebody may look, and how often somebody has. */
  lookAt: number
  looks: number
  /** As what the present attempt was begun. */
  kind: Claimant['kind']
  /** An operator has erased it: nothing ever runs under the key again. */
  erased?: boolean
}

type Settling =
  | 'not_executed'
  | 'executed'
  | 'reply'
  | 'park'
  | 'park_by_operator'
  | 'unpark'
  | 'expire'
  | 'erase'
  | 'look'
  | 'look_again'
  | 'look_void'
  | 'look_found'

type Step =
  | { do: 'claim'; request: number; takeover: 'resume' | 'doubt'; kind: Claimant['kind'] }
  | { do: 'complete' | 'release' | 'doubt' | 'extend' | 'forget'; fenceBehind: number }
  | { do: Settling }
  | { do: 'pass'; ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    do: fc.constant('claim' as const),
    request: fc.integer({ min: 1, max: 2 }),
    takeover: fc.constantFrom('resume' as const, 'doubt' as const),
    kind: fc.constantFrom(...KINDS),
  }),
  fc.record({
    do: fc.constantFrom(
      'complete' as const,
      'release' as const,
      'doubt' as const,
      'extend' as const,
      'forget' as const,
    ),
    fenceBehind: fc.integer({ min: 0, max: 1 }),
  }),
  fc.record({
    do: fc.constantFrom(
      'not_executed' as const,
      'executed' as const,
      'reply' as const,
      'park' as const,
      'park_by_operator' as const,
      'look' as const,
      'look_again' as const,
      'look_void' as const,
      'look_found' as const,
      'unpark' as const,
      'expire' as const,
      'erase' as const,
    ),
  }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 99, 100, 999, 1_000) }),
)

/** What the model says a claim comes to. */
function modelClaim(model: Model, request: number, takeover: string, kind: string, now: number): string {
  if (model.erased) return 'replay'
  if (model.state === 'none' || model.state === 'expired') return 'run'
  if (model.request !== request) return 'key_reused'
  if (model.state === 'completed') return 'replay'
  if (model.state === 'retryable') return 'run'
  if (model.state === 'in_progress') {
    if (now < model.leaseUntil) return 'in_progress'
    const again = ['operation', 'handler_rerunnable'].includes(kind) && model.kind === kind
    return takeover === 'resume' && again ? 'run' : 'vanished'
  }
  return model.state
}

class World {
  now = 1_000_000
  record: OnceRecord | null = null
  model: Model = {
    state: 'none',
    fence: 0,
    request: 0,
    leaseUntil: 0,
    expiresAt: 0,
    decided: false,
    lookAt: 0,
    looks: 0,
    kind: 'handler',
  }
  attempts = 0

  apply(step: Step): unknown {
    switch (step.do) {
      case 'pass':
        this.now += step.ms
        return null
      case 'claim':
        return this.claim(step.request, step.takeover, step.kind)
      case 'complete':
      case 'release':
      case 'doubt':
      case 'extend':
        return this.own(step.do, (this.record?.fence ?? 1) - step.fenceBehind)
      case 'forget':
        return this.forget((this.record?.fence ?? 1) - step.fenceBehind)
      default:
        return this.settle(step.do)
    }
  }

  claim(request: number, takeover: 'resume' | 'doubt', kind: Claimant['kind']): void {
    this.attempts += 1
    const who = claimant(this.attempts, request, kind)
    const before = this.record
    const isSame = before === null || sameRequest(before, who)
    const claim = { claimant: who, sameRequest: isSame, leaseMs: LEASE_MS, takeover, graceMs: GRACE_MS }
    const decision = decide(before, claim, this.now)
    expect(decision.kind).toBe(modelClaim(this.model, request, takeover, kind, this.now))
    if (decision.kind === 'run') expect(decision.from).toBe(this.model.state)
    if (decision.kind === 'run') {
      this.record = decision.record
      expect(decision.record.attemptId).toBe(who.attemptId)
      const { fence } = this.model
      this.model = {
        state: 'in_progress',
        fence: fence + 1,
        request,
        leaseUntil: this.now + LEASE_MS,
        expiresAt: 0,
        decided: false,
        lookAt: 0,
        looks: 0,
        kind,
      }
    } else if (decision.kind === 'vanished') {
      this.record = decision.record
      Object.assign(this.model, { state: 'unknown', lookAt: this.model.leaseUntil + GRACE_MS, looks: 0 })
      expect(decision.due).toBe(this.model.kind !== 'operation' && this.model.lookAt <= this.now)
    } else if (decision.kind === 'unknown') {
      expect(decision.due).toBe(this.model.kind !== 'operation' && this.model.lookAt <= this.now)
    } else expect(this.record).toBe(before)
  }

  own(what: 'complete' | 'release' | 'doubt' | 'extend', fence: number): void {
    const { record, now, model } = this
    const mine = model.fence === fence
    const atWork = model.state === 'in_progress'
    const givenUp =
      model.kind !== 'operation' &&
      (model.state === 'unknown' || (model.state === 'parked' && !model.decided))
    expect(owns(record, fence)).toBe(mine && atWork)
    expect(mayAnswer(record, fence)).toBe(mine && (atWork || givenUp))
    if (!mayAnswer(record, fence) || (what === 'doubt' && !owns(record, fence))) return
    if (what === 'complete') this.record = complete(record, REPLY, RETENTION_MS, now)
    if (what === 'release') this.record = release(record, FAILURE, RETENTION_MS, now)
    if (what === 'doubt' && owns(record, fence)) this.record = doubt(record, FAILURE, now)
    if (what === 'extend') this.record = extend(record, LEASE_MS, now)
    const next = {
      complete: 'completed',
      release: 'retryable',
      doubt: 'unknown',
      extend: 'in_progress',
    } as const
    model.state = next[what]
    if (what === 'extend') model.leaseUntil = now + LEASE_MS
    if (what === 'doubt') Object.assign(model, { lookAt: now, looks: 0 })
    model.expiresAt = now + RETENTION_MS
  }

  /** Nothing is left of a record that its first owner removes: the next one begins anew. */
  forget(fence: number): void {
    const { record, model } = this
    const fresh = model.state === 'in_progress' && model.fence === 1 && fence === 1
    expect(mayForget(record, fence)).toBe(fresh)
    if (!fresh) return
    this.record = null
    Object.assign(model, { state: 'none', fence: 0 })
  }

  settle(what: Settling): void {
    const { record, model, now } = this
    if (record === null) return
    const open = record.state === 'unknown' || record.state === 'parked'
    if (what === 'not_executed' && open) this.record = settleAsNotExecuted(record, RETENTION_MS, now)
    if (what === 'reply' && open) this.record = settleWithReply(record, REPLY, RETENTION_MS, now)
    if (what === 'reply' && record.state === 'retryable')
      this.record = giveUp(record, REPLY, RETENTION_MS, now)
    if (what === 'park' && (record.state === 'unknown' || record.state === 'in_progress'))
      this.record = park(record, FAILURE, now)
    if (what === 'park_by_operator' && (record.state === 'unknown' || record.state === 'in_progress'))
      this.record = parkByOperator(record, FAILURE, now)
    if (what.startsWith('look') && record.state === 'unknown') {
      this.look(what, record)
      return
    }
    if (what === 'unpark' && record.state === 'parked') this.record = unpark(record, now)
    if (what === 'executed' && record.state === 'unknown') {
      this.attempts += 1
      this.record = settleAsExecuted(record, claimant(this.attempts, model.request), LEASE_MS, now)
      model.fence += 1
      model.kind = 'handler'
      model.leaseUntil = now + LEASE_MS
    }
    if (what === 'expire' && (record.state === 'completed' || record.state === 'retryable')) {
      const expired = expire(record, now)
      expect(expired !== null).toBe(now >= model.expiresAt)
      this.record = expired ?? record
    }
    const finished =
      record.state === 'completed' || record.state === 'retryable' || record.state === 'expired'
    if (what === 'erase' && finished) {
      this.record = erase(record, now)
      Object.assign(model, { erased: true, expiresAt: Number.POSITIVE_INFINITY })
    }
    if (this.record === record) return
    const next = {
      not_executed: 'retryable',
      reply: 'completed',
      park: 'parked',
      park_by_operator: 'parked',
      look: 'unknown',
      look_again: 'unknown',
      look_void: 'retryable',
      look_found: 'completed',
      unpark: 'unknown',
      executed: 'in_progress',
      expire: 'expired',
      erase: 'completed',
    } as const
    model.state = next[what]
    model.decided =
      what === 'park_by_operator' || what === 'not_executed' || what === 'reply' || what === 'erase'
    if (what === 'unpark') Object.assign(model, { lookAt: now, looks: 0 })
    if (what === 'not_executed' || what === 'reply') model.expiresAt = now + RETENTION_MS
  }

  /** Looks are taken when they are due, one at a time; the fence stays the owner's. */
  look(what: string, record: Unknown): void {
    const { model, now } = this
    if (what === 'look') {
      const taken = takeLook(record, LEASE_MS, now)
      expect(taken !== null).toBe(model.kind !== 'operation' && now >= model.lookAt)
      if (taken === null) return
      this.record = taken
      Object.assign(model, { looks: model.looks + 1, lookAt: now + LEASE_MS })
      expect([taken.looks, taken.lookAt]).toEqual([model.looks, model.lookAt])
      return
    }
    const end: LookEnd =
      what === 'look_void'
        ? { end: 'void', failure: FAILURE }
        : what === 'look_found'
          ? { end: 'found', reply: REPLY }
          : { end: 'again', inMs: 999 }
    this.record = endLook(record, end, RETENTION_MS, now)
    if (end.end === 'again') model.lookAt = now + 999
    else
      Object.assign(model, {
        state: end.end === 'void' ? 'retryable' : 'completed',
        expiresAt: now + RETENTION_MS,
      })
  }

  check(from: State | 'none'): void {
    const { record, model } = this
    expect(record?.state ?? 'none').toBe(model.state)
    expect(record?.fence ?? 0).toBe(model.fence)
    if (model.state !== from) expect(EDGES[from]).toContain(model.state)
    if (record === null) return
    const shape = {
      lease: record.state === 'in_progress',
      reply: record.state === 'completed',
      failure: ['retryable', 'unknown', 'parked'].includes(record.state),
      expires: ['completed', 'retryable', 'expired'].includes(record.state),
    }
    expect('leaseUntil' in record).toBe(shape.lease)
    expect('reply' in record).toBe(shape.reply)
    expect('failure' in record).toBe(shape.failure)
    expect('expiresAt' in record).toBe(shape.expires)
  }
}

describe('the life of a record', () => {
  it('agrees with an independent model over any sequence of steps', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const world = new World()
        for (const each of steps) {
          const from = world.model.state
          const fence = world.model.fence
          world.apply(each)
          world.check(from)
          if (world.model.state !== 'none') expect(world.model.fence).toBeGreaterThanOrEqual(fence)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('reaches every edge that it declares, and declares every edge that it reaches', () => {
    const reached = new Set<string>()
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 80 }), (steps) => {
        const world = new World()
        for (const each of steps) {
          const from = world.model.state
          const { fence, erased } = world.model
          world.apply(each)
          const { model } = world
          if (model.state !== from || model.fence !== fence || model.erased !== erased)
            reached.add(`${from} -> ${world.model.state}`)
        }
      }),
      { numRuns: 1_000, seed: 7 },
    )
    // A transaction goes from none, retryable or expired to its end in one commit, which no single step shows.
    const atOnce = ['none', 'retryable', 'expired'].flatMap((from) => [
      `${from} -> completed`,
      `${from} -> retryable`,
    ])
    const declared = Object.entries(EDGES).flatMap(([from, to]) => to.map((state) => `${from} -> ${state}`))
    expect([...reached].filter((edge) => !declared.includes(edge))).toEqual([])
    expect(declared.filter((edge) => !reached.has(edge) && !atOnce.includes(edge))).toEqual([])
  })

  it('answers a reused key alike in every state that can be seen', () => {
    const first = reserve(null, claimant(1, 1), LEASE_MS, 0)
    const states: OnceRecord[] = [
      first,
      complete(first, REPLY, RETENTION_MS, 0),
      release(first, FAILURE, RETENTION_MS, 0),
      doubt(first, FAILURE, 0),
      park(doubt(first, FAILURE, 0), FAILURE, 0),
    ]
    for (const record of states) {
      const claim = {
        claimant: claimant(2, 2),
        sameRequest: false,
        leaseMs: LEASE_MS,
        takeover: 'resume',
      } as const
      expect(decide(record, claim, 10_000)).toEqual({ kind: 'key_reused' })
    }
  })
})
