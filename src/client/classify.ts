import type { Attempt } from './options.ts'

/** What is known about the key after a call: the three classes of failure. */
export type Outcome = 'not_executed' | 'executed' | 'unknown'

/**
 * What a whole sequence of attempts proves. One answer may speak for its own request alone, while an earlier attempt that was not answered may
 * have taken effect. So nothing was executed only if each attempt is proved to have done nothing, or if the last answer speaks for the record.
 *
 * `resumed`: the key may have been sent before the first of these attempts.
 */
export function classify(attempts: readonly Pick<Attempt, 'executed'>[], resumed: boolean): Outcome {
  const has = (evidence: Attempt['executed']) => attempts.some(({ executed }) => executed === evidence)
  if (has('yes')) return 'executed'
  if (attempts.at(-1)?.executed === 'no') return 'not_executed'
  return resumed || has('unknown') ? 'unknown' : 'not_executed'
}
