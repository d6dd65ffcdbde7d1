import { LIMITS } from '../limits.ts'
import { Deadline } from '../retry.ts'
import type { CallSite } from './foreign.ts'
import type { Hold } from './operation-hold.ts'

/** Where a call of an operation is made from. */
export function callSiteOf<Tx>(hold: Hold<Tx>, key: string, maybe_sent: boolean): CallSite {
  const { house, attempt, id } = hold
  const { resumed, lease_ms, calls_until } = attempt
  const since = new Deadline(LIMITS.timer_max_ms)
  const elapsed_ms = () => LIMITS.timer_max_ms - since.left_ms
  return {
    key,
    maybe_sent,
    // A lease that is renewed at a third of it has two thirds left at least.
    timeout_ms: Math.floor((lease_ms * 2) / 3),
    lost: () => hold.lost,
    onLost: (tell) => hold.onLost(tell),
    crashPoint: house.crashPoint,
    keyAgeMs: () => hold.key_age_ms,
    sentAgeMs: () => {
      const sent_age_ms = resumed?.sent_age_ms ?? null
      return sent_age_ms === null ? null : sent_age_ms + elapsed_ms()
    },
    mayCall: () => !calls_until.passed,
    holdFor: (ms) => hold.holdFor(ms),
    evidence: async () => {
      const told = await house.operations.evidence(id.account, key)
      return told === null ? null : { result: JSON.parse(told.bytes.toString('utf8')) }
    },
  }
}
