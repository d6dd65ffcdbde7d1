import { LIMITS } from '../../core/limits.ts'
import type { CallSignals } from '../../observe/index.ts'
import { busyFor, type Outcome } from '../transaction.ts'
import type { Boarding } from './flights.ts'

/** What a caller is told, and whether it was another's flight that brought it. */
export interface Followed {
  readonly outcome: Outcome
  readonly joined: boolean
}

type Aside = Extract<Boarding<Outcome>, { role: 'aside' }>
type Aboard = Exclude<Boarding<Outcome>, Aside>

/**
 * Another request with the same key was first, and only looks. It may be a wrong one, and this one the retry of what is done: the
 * record decides, so this caller asks as soon as the other has its answer. Where the other runs, the key was reused.
 */
export async function boardBehind(
  { cameTo, flight }: Aside,
  board: () => Boarding<Outcome>,
): Promise<Aboard> {
  let known = await cameTo
  for (let turns = 0; known === 'landed' && turns < LIMITS.attemptsMax; turns += 1) {
    const boarding = board()
    if (boarding.role !== 'aside') return boarding
    known = await boarding.cameTo
  }
  return known === 'runs' ? { role: 'refused' } : { role: 'busy', flight }
}

/** How it goes for a caller who was not the first. */
export async function follow(
  boarding: Exclude<Aboard, { role: 'first' }>,
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
