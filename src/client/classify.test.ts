import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classify, type Outcome } from './classify.ts'
import type { Evidence } from './options.ts'

const of = (evidence: readonly Evidence[], resumed = false) =>
  classify(
    evidence.map((executed) => ({ executed })),
    resumed,
  )

describe('the class of a sequence', () => {
  const [door, lost, no, yes] = ['not_by_this_request', 'unknown', 'no', 'yes'] as const
  const CASES: [string, Evidence[], boolean, Outcome][] = [
    ['nothing was sent', [], false, 'not_executed'],
    ['nothing was sent now, perhaps before', [], true, 'unknown'],
    ['refused at the door each time', [door, door, door], false, 'not_executed'],
    ['refused at the door, with a key that was sent before', [door], true, 'unknown'],
    ['no answer', [lost], false, 'unknown'],
    ['no answer, then 401 or 403', [lost, door], false, 'unknown'],
    ['rate limited, no answer, rate limited', [door, lost, door], false, 'unknown'],
    ['no answer, then the record says no', [lost, no], false, 'not_executed'],
    ['sent before, and the record says no', [no], true, 'not_executed'],
    ['the record says no, then no answer', [no, lost], false, 'unknown'],
    ['no answer, no, then refused at the door', [lost, no, door], false, 'unknown'],
    ['half of an answer', [yes, lost], false, 'executed'],
    ['half of an answer, and then the door', [lost, yes, door], true, 'executed'],
  ]
  it.each(CASES)('%s', (_, evidence, resumed, expected) => {
    expect(of(evidence, resumed)).toBe(expected)
  })
})

/**
 * A server as it is: an attempt arrives or does not, executes the key at most once, and its answer arrives or does not. What the client concludes
 * must be true of it. Attempts arrive in order here: one that is given up does not arrive later.
 */
describe('against a server', () => {
  const step = fc.record({
    arrives: fc.boolean(),
    answered: fc.boolean(),
    does: fc.constantFrom('refuse', 'execute', 'fail and roll back', 'tell the record'),
  })
  const play = (steps: readonly { arrives: boolean; answered: boolean; does: string }[], before: boolean) => {
    let executed = before
    const evidence = steps.map(({ arrives, answered, does }): Evidence => {
      if (!arrives) return 'unknown'
      if (does === 'execute') executed = true
      if (!answered) return 'unknown'
      if (does === 'refuse') return 'not_by_this_request'
      if (does === 'execute') return 'yes'
      return executed ? 'yes' : 'no'
    })
    return { executed, evidence }
  }

  it('is never wrong', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 6 }), fc.boolean(), (steps, before) => {
        const { executed, evidence } = play(steps, before)
        const outcome = of(evidence, before)
        if (outcome === 'not_executed') expect(executed).toBe(false)
        if (outcome === 'executed') expect(executed).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  it('is certain where each attempt was answered', () => {
    const answered = step.map((one) => ({ ...one, arrives: true, answered: true }))
    fc.assert(
      fc.property(fc.array(answered, { minLength: 1, maxLength: 6 }), (steps) => {
        expect(of(play(steps, false).evidence)).not.toBe('unknown')
      }),
    )
  })
})
