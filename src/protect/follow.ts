import type { CallSignals } from '../observe/index.ts'
import type { Boarding } from './flights.ts'
import { busyFor, type Outcome } from './transaction.ts'

/** What a caller is told, and whether it was another's flight that brought it. */
export interface Followed {
  readonly outcome: Outcome
  readonly joined: boolean
}

/** How it goes for a caller who was not the first. */
export async function follow(
  boarding: Exclude<Boarding<Outcome>, { role: 'first' }>,
  signals: CallSignals,
): Promise<Followed> {
  switch (boarding.role) {
    case 'refused':
      return { outcome: { outcome: 'key_reused' }, joined: false }
    case 'busy':
      return { outcome: busyFor(boarding.flight.over), joined: false }
    case 'undecided': {
      // The first may be a retry as well, of what was done long ago: then its replay is for all.
      const outcome = await boarding.landed
      if (outcome === null) return { outcome: busyFor(boarding.flight.over), joined: false }
      signals.joined(boarding.flight.trace)
      return { outcome, joined: true }
    }
    case 'joined':
      signals.joined(boarding.flight.trace)
      return { outcome: (await boarding.landed) ?? busyFor(boarding.flight.over), joined: true }
    default:
      return boarding satisfies never
  }
}
