import { derivedKey } from '../key/index.ts'
import { LIMITS } from '../limits.ts'
import { Deadline } from '../retry.ts'
import type { CallSite } from './asking.ts'
import type { Hold } from './operation-hold.ts'

/** Where the call of a step is made from. */
export function callSiteOf<Tx>(
  hold: Hold<Tx>,
  step: string,
  unproved: boolean,
  kind: 'foreign' | 'undo_foreign',
): CallSite {
  const { house, attempt, id } = hold
  const { key, void_keys } = callKeys({ ...id, step }, attempt.resumed?.void_calls ?? [])
  // Where an earlier call is what was waited for, this one was not even begun.
  const maybe_sent = unproved && !void_keys.includes(attempt.resumed?.waited_for ?? '')
  const { resumed, lease_ms, begins_until } = attempt
  const since = new Deadline(LIMITS.timer_max_ms)
  const elapsed_ms = () => LIMITS.timer_max_ms - since.left_ms
  return {
    key,
    void_keys,
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
    // A deadline says until when the request is wanted. What was done of it is undone at any time.
    mayCall: () => kind === 'undo_foreign' || !begins_until.passed,
    holdFor: (ms) => hold.holdFor(ms),
    evidence: async (call_key) => {
      const told = await house.operations.evidence(id, call_key)
      if (told === null) return null
      return { result: JSON.parse(told.bytes.toString('utf8')), received_at: told.received_at }
    },
    refuseEvidence: (call_key, received_at) => house.operations.refuseEvidence(id, call_key, received_at),
    refusals: [],
    failed_finds: [],
  }
}

/** The key of the next call of a step, and behind it those that operators have declared void: one generation after the other. */
export function callKeys(
  of: { readonly account: string; readonly operation: string; readonly key: string; readonly step: string },
  void_calls: readonly string[],
): Pick<CallSite, 'key' | 'void_keys'> {
  const void_keys: string[] = []
  for (let generation = 0; ; generation += 1) {
    const key = derivedKey({ ...of, generation })
    if (!void_calls.includes(key)) return { key, void_keys }
    void_keys.push(key)
  }
}
