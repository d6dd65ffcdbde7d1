import type { Mutant } from './mutants.ts'

const DOOR = 'test/cli/door.test.ts'
const COMMANDS = 'test/cli/commands.test.ts'
const KEEPING = 'test/cli/keeping.test.ts'
const ROTATION = 'src/store/postgres/rotation.ts'

/** Faults in what the command line promises: to whom it says what, and what it leaves alone. */
export const CLI_MUTANTS: readonly Mutant[] = [
  {
    name: 'command line: list a key of its own among those of the service',
    file: 'src/store/postgres/store.ts',
    edits: [{ from: `      if (this.#starts === 'to_look') return\n`, to: '' }],
    tests: [COMMANDS],
    only: 'by an operator without the secret',
  },
  {
    name: 'command line: store a reply in the clear where the service seals',
    file: 'src/cli/open.ts',
    edits: [{ from: 'if (used.length === 0) return', to: 'if (used.length >= 0) return' }],
    tests: [COMMANDS],
    only: 'by an operator without the secret',
  },
  {
    name: 'command line: seal a reply with bytes that the service has not',
    file: 'src/cli/open.ts',
    edits: [{ from: 'listed.digest !== ring.digestOf(ring.currentId)', to: 'ring.currentId === null' }],
    tests: [COMMANDS],
    only: 'by an operator without the secret',
  },
  {
    name: 'command line: do what cannot be taken back without asking',
    file: 'src/cli/io.ts',
    edits: [{ from: '  if (yes) return\n', to: '  if (yes || io.stdin.isTTY !== true) return\n' }],
    tests: [DOOR],
    only: 'is asked about on a terminal',
  },
  {
    name: 'command line: print a password',
    file: 'src/cli/io.ts',
    edits: [{ from: `shown.replaceAll(secret, '***')`, to: 'shown' }],
    tests: [DOOR],
    only: 'are nowhere in what is printed',
  },
  {
    name: 'command line: let a text of the database give orders to a terminal',
    file: 'src/cli/table.ts',
    edits: [
      { from: '[head, ...rows].map((row) => row.map(plain))', to: '[head, ...rows].map((row) => [...row])' },
    ],
    tests: [COMMANDS],
    only: 'what is parked, and another try',
  },
  {
    name: 'command line: go on with the next batch after SIGINT',
    file: 'src/cli/commands/reap.ts',
    edits: [{ from: 'more && !io.signal.aborted', to: 'more' }],
    tests: [DOOR],
    only: 'SIGINT ends it',
  },
  {
    name: 'command line: apply migrations behind the one that was asked for',
    file: 'src/store/postgres/migrate.ts',
    edits: [
      {
        from: '.filter(({ version }) => version <= to)',
        to: '.filter(({ version }) => to > 0 && version > 0)',
      },
    ],
    tests: [COMMANDS],
    only: 'up to a number',
  },
  {
    name: 'erase: take a retry of an erased key for another request',
    file: 'src/fingerprint/sign.ts',
    edits: [
      {
        from: 'if (stored.keyId === ERASED_KEY_ID) return true',
        to: 'if (stored.keyId === ERASED_KEY_ID) return false',
      },
    ],
    tests: [KEEPING],
    only: 'no erased key runs again',
  },
  {
    name: 'erase: tell that an erased request took effect',
    file: 'src/record/value.ts',
    edits: [{ from: `  if (isErased(reply)) throw new OnlyonceError('key_erased')\n`, to: '' }],
    tests: [KEEPING],
    only: 'no erased key runs again',
  },
  {
    name: 'erase: forget a request whose outcome is not known',
    file: 'src/store/postgres/sql/erasure.ts',
    edits: [
      { from: `(r.state IN ('completed', 'expired')`, to: `(r.state IN ('completed', 'expired', 'unknown')` },
    ],
    tests: [KEEPING],
    only: 'is left, and told',
  },
  {
    name: 'erase: forget what was told about the call of an unfinished request',
    file: 'src/store/postgres/sql/erasure.ts',
    edits: [
      {
        from: 'WHERE r.account = $1 AND r.expires_at IS NULL',
        to: 'WHERE r.account = $1 AND r.waits_for = o.call_key',
      },
    ],
    tests: [KEEPING],
    only: 'is left, and told',
  },
  {
    name: 'erase: forget a request whose steps are durable and can be resumed',
    file: 'src/store/postgres/sql/erasure.ts',
    edits: [
      { from: '(coalesce(r.points, 0) = 0 OR r.expires_at <= clock_timestamp())', to: 'r.key IS NOT NULL' },
    ],
    tests: [KEEPING],
    only: 'is left, and told',
  },
  {
    name: 'erase: write over a record that a retry has taken meanwhile',
    file: 'src/store/postgres/sql/erasure.ts',
    edits: [
      {
        from: `AND r.fence = k.fence AND r.attempt_id = k.attempt_id AND r.state = k.state AND \${ERASABLE} AND NOT \${ERASED}`,
        to: '',
      },
    ],
    tests: [KEEPING],
    only: 'in that moment keeps it',
  },
  {
    name: 'erase: keep the history of attempts',
    file: 'src/store/postgres/sql/erasure.ts',
    edits: [
      {
        from: 'WHERE a.account = $1 AND a.operation = erased.operation AND a.key = erased.key',
        to: 'WHERE false',
      },
    ],
    tests: [KEEPING],
    only: 'no erased key runs again',
  },
  {
    name: 'erase: let the reaper take a tombstone',
    file: 'src/store/postgres/sql/erasure.ts',
    edits: [{ from: `timestamptz '9999-12-31 00:00:00Z'`, to: 'clock_timestamp()' }],
    tests: [KEEPING],
    only: 'what the rules make of it',
  },
  {
    name: 'rotate: put a seal in the place of bytes that have changed',
    file: 'src/store/postgres/sql/rotation.ts',
    edits: [{ from: `sha256(coalesce(r.reply_body, ''::bytea)) = k.was`, to: 'k.was IS NOT NULL' }],
    tests: [KEEPING],
    only: 'puts nothing in the place',
  },
  {
    name: 'rotate: seal what an owner works on',
    file: ROTATION,
    edits: [
      { from: 'const concerned = items.length > 0 && row.owned', to: 'const concerned = items.length < 0' },
    ],
    tests: [KEEPING],
    only: 'puts nothing in the place',
  },
  {
    name: 'rotate: leave out what is behind the first page',
    file: ROTATION,
    edits: [{ from: 'after: last === null ? null : READ[table](last).key', to: 'after: null' }],
    tests: [KEEPING],
    only: 'two at once',
  },
  {
    name: 'rotate: let one row that is held keep the others',
    file: ROTATION,
    edits: [
      {
        from: `if (classify(error) !== 'lock_wait') throw error`,
        to: `if (classify(error) !== 'idle') throw error`,
      },
    ],
    tests: [KEEPING],
    only: 'puts nothing in the place',
  },
]
