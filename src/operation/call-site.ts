import { LIMITS } from '../core/limits.ts'
import { Deadline } from '../core/retry.ts'
import { derivedKey } from '../key/index.ts'
import type { CallSite } from './asking.ts'
import type { Hold } from './hold.ts'

/** Where the call of a step is made from. */
export function callSiteOf<Tx>(
  hold: Hold<Tx>,
  step: string,
  unproved: boolean,
  kind: 'foreign' | 'undo_foreign',
): CallSite {
  const { house, attempt, id } = hold
  const { key, voidKeys } = callKeys({ ...id, step }, attempt.resumed?.voidCalls ?? [])
  // Where an earlier call is what was waited for, this one was not even begun.
  const maybeSent = unproved && !voidKeys.includes(attempt.resumed?.waitedFor ?? '')
  const { resumed, leaseMs, beginsUntil } = attempt
  const since = new Deadline(LIMITS.timerMaxMs)
  const elapsedMs = () => LIMITS.timerMaxMs - since.leftMs
  return {
    key,
    voidKeys,
    maybeSent,
    // A lease that is renewed at a third of it has two thirds left at least.
    timeoutMs: Math.floor((leaseMs * 2) / 3),
    lost: () => hold.lost,
    onLost: (tell) => hold.onLost(tell),
    crashPoint: house.crashPoint,
    keyAgeMs: () => hold.keyAgeMs,
    sentAgeMs: () => {
      const sentAgeMs = resumed?.sentAgeMs ?? null
      return sentAgeMs === null ? null : sentAgeMs + elapsedMs()
    },
    // A deadline says until when the request is wanted. What was done of it is undone at any time.
    mayCall: () => kind === 'undo_foreign' || !beginsUntil.passed,
    holdFor: (ms) => hold.holdFor(ms),
    evidence: async (callKey) => {
      const told = await house.operations.evidence(id, callKey)
      if (told === null) return null
      return { result: JSON.parse(told.bytes.toString('utf8')), receivedAt: told.receivedAt }
    },
    refuseEvidence: (callKey, receivedAt) => house.operations.refuseEvidence(id, callKey, receivedAt),
    refusals: [],
    failedFinds: [],
  }
}

/** The key of the next call of a step, and behind it those that operators have declared void: one generation after the other. */
export function callKeys(
  of: { readonly account: string; readonly operation: string; readonly key: string; readonly step: string },
  voidCalls: readonly string[],
): Pick<CallSite, 'key' | 'voidKeys'> {
  const voidKeys: string[] = []
  for (let generation = 0; ; generation += 1) {
    const key = derivedKey({ ...of, generation })
    if (!voidCalls.includes(key)) return { key, voidKeys }
    voidKeys.push(key)
  }
}
