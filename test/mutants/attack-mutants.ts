import type { Mutant } from './mutants.ts'

const DRIVER = 'test/truth/driver-errors.test.ts'

/** Defects that somebody who means harm, or a deploy at a bad moment, has found. */
export const ATTACK_MUTANTS: readonly Mutant[] = [
  {
    name: 'kinds: let the code that comes after a vanished handler decide',
    file: 'src/record/transitions.ts',
    edits: [
      {
        from: `claim.takeover === 'resume' && mayFollow(record.kind, claim.claimant.kind)`,
        to: `claim.takeover === 'resume'`,
      },
    ],
    tests: ['test/contract/kinds.test.ts'],
    only: 'is not run again',
  },
  {
    name: 'kinds: let workers go on with a handler that followed an operation',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [
      { from: ` AND \${presentKind('r')} = 'o'\nORDER BY attempted_at`, to: `\nORDER BY attempted_at` },
      { from: `    AND (state IN ('retryable', 'expired') OR \${presentKind('p')} = 'o')\n`, to: `` },
    ],
    tests: ['test/contract/kinds.test.ts'],
    only: 'no worker goes on with it',
  },
  {
    name: 'take a rollback for that of a savepoint because of a word in the text',
    file: 'src/store/postgres/tx.ts',
    edits: [{ from: `!isToSavepoint(text ?? '')`, to: `!/\\bto\\b/i.test(text ?? '')` }],
    tests: ['test/contract/misuse-ended.test.ts'],
    only: 'go to',
  },
]
