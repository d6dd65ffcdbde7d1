import type { Mutant } from './mutants.ts'

/** Faults in what clients are told about when to come back, and in when a doubt is looked at. */
export const COME_BACK_MUTANTS: readonly Mutant[] = [
  {
    name: 'tell every client to come back after a second',
    file: 'src/record/come-back.ts',
    edits: [
      {
        from: `Math.max(LIMITS.retryAfterMs, Math.min(elapsedMs, LIMITS.retryAfterMaxMs))`,
        to: `LIMITS.retryAfterMs + 0 * elapsedMs`,
      },
    ],
    tests: ['src/record/come-back.test.ts'],
  },
  {
    name: 'tell a client to wait longer than the lease of a dead owner',
    file: 'src/record/come-back.ts',
    edits: [
      {
        from: `Math.min(asLongAgain(now - attemptedAt), leaseUntil - now)`,
        to: `asLongAgain(now - attemptedAt + 0 * leaseUntil)`,
      },
    ],
    tests: ['src/record/come-back.test.ts', 'test/contract/come-back.test.ts'],
  },
  {
    name: 'forget when the next look comes, where a record is read',
    file: 'src/store/postgres/rows.ts',
    edits: [{ from: `row[20] == null ? null : Number(row[20])`, to: `null` }],
    tests: ['test/contract/come-back.test.ts'],
    only: 'when the next look comes',
  },
  {
    name: 'operation: let the first look come after a minute',
    file: 'src/core/limits.ts',
    edits: [{ from: `2_000, 5_000, 15_000, 45_000, 120_000`, to: `60_000, 120_000` }],
    tests: ['src/record/come-back.test.ts'],
  },
  {
    name: 'operation: park what is in doubt sooner, because the looks come sooner',
    file: 'src/core/limits.ts',
    edits: [{ from: `600_000, 3_600_000, 21_600_000, 86_400_000]`, to: `600_000, 3_600_000, 21_600_000]` }],
    tests: ['src/record/come-back.test.ts'],
  },
]
