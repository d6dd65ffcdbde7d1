import type { FaultyFile } from './build-in.ts'

/** A defect that was there once, and the torture that has to find it. */
export interface TortureMutant extends FaultyFile {
  readonly scenario: string
  readonly faults: readonly string[]
  readonly seconds: number
  readonly seed: number
  /** The rule of the judge that has to be violated. */
  readonly rule: string
}

const PASSING_ERRORS = ['sqlstate_53100', 'sqlstate_53200', 'sqlstate_58030']

/**
 * Three defects that all tests had missed, and that the whole service under faults showed. Each comes back here by an edit
 * that takes its repair out. `npm run mutants -- --torture` runs them.
 */
export const TORTURE_MUTANTS: readonly TortureMutant[] = [
  {
    name: 'torture: give back a connection that the pool did not give',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `if (client === undefined) {`, to: `if (client === undefined && waiting) {` }],
    scenario: 'links',
    faults: ['database_link_silent', 'database_link_mute', 'database_link_deaf'],
    seconds: 40,
    seed: 11,
    rule: 'processes live',
  },
  {
    name: 'torture: say that nothing was executed though the record is in doubt after a call',
    file: 'src/operation/conclude.ts',
    edits: [{ from: `left.why === 'conflict' || claimsNothingDone(end.error) ? left : end`, to: `end` }],
    scenario: 'storage',
    faults: PASSING_ERRORS,
    seconds: 20,
    seed: 12,
    rule: 'not executed is true',
  },
  {
    name: 'torture: take a disk that is full for an answer of the work',
    file: 'src/store/postgres/sql-states.ts',
    edits: [{ from: `  '53': 'passing',`, to: `  '53': 'meant',` }],
    scenario: 'storage',
    faults: PASSING_ERRORS,
    seconds: 20,
    seed: 13,
    rule: 'answers are documented',
  },
]
