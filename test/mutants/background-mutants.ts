import type { Mutant } from './mutants.ts'

/** Faults in what is done beside the calls: removing records, locks, and what operators decide. */
export const BACKGROUND_MUTANTS: readonly Mutant[] = [
  {
    name: 'start: hide from migrate() why the database cannot be used',
    file: 'src/store/postgres/migrate.ts',
    edits: [{ from: `throw startTrouble(error)`, to: `throw error` }],
    tests: ['test/contract/misconfigured.test.ts'],
    only: 'on a pool: a wrong password is told',
  },
  {
    name: 'start: hide from migrate() that nothing listens',
    file: 'src/store/postgres/migrate.ts',
    edits: [{ from: `, ...(detail !== undefined && { detail })`, to: `` }],
    tests: ['test/contract/misconfigured.test.ts'],
    only: 'on a pool: a port where nothing listens is told',
  },
  {
    name: 'start: take a certificate for another host for something that passes',
    file: 'src/store/postgres/trouble.ts',
    edits: [{ from: `ERR_TLS_CERT_ALTNAME_INVALID: WRONG_HOST`, to: `ERR_TLS_CERT_ALTNAME_INVALID: LATE` }],
    tests: ['test/contract/certificates.test.ts'],
    only: 'is for another host',
  },
  {
    name: 'start: refuse a role that may not delete a key that is used no more',
    file: 'src/store/postgres/key-ids.ts',
    edits: [{ from: `if (sqlState(error) !== INSUFFICIENT_PRIVILEGE) throw error`, to: `throw error` }],
    tests: ['test/contract/no-delete.test.ts'],
    only: 'listed and used no more',
  },
  {
    name: 'unattended: take a worker that is behind for one that is missing',
    file: 'src/observe/unattended-watch.ts',
    edits: [
      {
        from: `JSON.stringify([id.account, id.operation, id.key, fence])`,
        to: `JSON.stringify([id.operation, fence > 0])`,
      },
    ],
    tests: ['test/operations/unattended.test.ts'],
    only: 'only busy',
  },
  {
    name: 'unattended: warn of an operation again and again',
    file: 'src/observe/observers.ts',
    edits: [{ from: `this.none && isFirst(this.#unattended, id)`, to: `this.none` }],
    tests: ['src/observe/observers.test.ts'],
    only: 'once for each',
  },
  {
    name: 'unattended: let an operation without a worker hide another',
    file: 'src/observe/unattended-watch.ts',
    edits: [{ from: `await this.#find([...this.#found.keys()])`, to: `await this.#find([])` }],
    tests: ['test/operations/unattended.test.ts'],
    only: 'hides no other',
  },
  {
    name: 'background: go on pruning as a role that may not delete',
    file: 'src/onlyonce/background.ts',
    edits: [
      { from: `if (code === INSUFFICIENT_PRIVILEGE) this.#planned`, to: `if (code === '') this.#planned` },
    ],
    tests: ['src/onlyonce/background.test.ts'],
  },
  {
    name: 'remove what is in progress',
    file: 'src/store/postgres/sql/reap.ts',
    edits: [
      {
        from: "const FINISHED = `r.state IN ('completed', 'retryable')`",
        to: "const FINISHED = `r.state <> 'expired'`",
      },
      {
        from: `\${FINISHED} AND r.expires_at <= now() AND`,
        to: `\${FINISHED} AND coalesce(r.expires_at, r.lease_until, r.changed_at) <= now() AND`,
      },
      {
        from: `\${FINISHED} AND r.expires_at <= clock_timestamp() AND`,
        to: `\${FINISHED} AND coalesce(r.expires_at, r.lease_until, r.changed_at) <= clock_timestamp() AND`,
      },
    ],
    tests: ['test/contract/reaper.test.ts'],
  },
  {
    name: 'remove a record that was taken between the look and the removal',
    file: 'src/store/postgres/sql/reap.ts',
    edits: [{ from: 'AND r.fence = k.fence AND r.attempt_id = k.attempt_id', to: '' }],
    tests: ['test/contract/reaper.test.ts'],
  },
  {
    name: 'remove a record whose expiry was put off between the look and the removal',
    file: 'src/store/postgres/sql/reap.ts',
    edits: [{ from: `\${FINISHED} AND r.expires_at <= clock_timestamp() AND`, to: `\${FINISHED} AND` }],
    tests: ['test/contract/reaper.test.ts'],
  },
  {
    name: 'remove the verdict on a lost COMMIT at once',
    file: 'src/workers/reaper.ts',
    edits: [{ from: 'Math.max(LIMITS.finishedKeptMinMs, engine.store.doubtMaxMs)', to: '0' }],
    tests: ['test/contract/reaper.test.ts'],
  },
  {
    name: 'run a worker beside itself',
    file: 'src/workers/loop.ts',
    edits: [{ from: 'if (taken.has(worker)) {', to: 'if (taken.has(worker) && everyMs < 0) {' }],
    tests: ['src/workers/loop.test.ts'],
  },
  {
    name: 'give the next holder of a lock the same token',
    file: 'src/store/postgres/sql/locks.ts',
    edits: [{ from: 'SET token = l.token + 1,', to: 'SET token = l.token,' }],
    tests: ['test/contract/locks.test.ts'],
  },
  {
    name: 'let anybody release a lock',
    file: 'src/store/postgres/sql/locks.ts',
    edits: [
      {
        from: `SET holder = NULL, held_until = clock_timestamp()\nWHERE \${HELD}`,
        to: `SET holder = NULL, held_until = clock_timestamp()\nWHERE \${ONE} AND $3::bigint > 0 AND $4::uuid IS NOT NULL`,
      },
    ],
    tests: ['test/contract/locks.test.ts'],
  },
  {
    name: 'let the next holder in before the transaction of the last one has ended',
    file: 'src/store/postgres/sql/locks.ts',
    edits: [
      {
        from: 'held_until <= clock_timestamp() FOR UPDATE',
        to: 'held_until <= clock_timestamp() FOR NO KEY UPDATE',
      },
    ],
    tests: ['test/contract/locks.test.ts'],
  },
  {
    name: 'let a sign of life wait for a transaction that has asserted the fence',
    file: 'src/store/postgres/sql/locks.ts',
    edits: [{ from: `WHERE \${HELD} FOR KEY SHARE`, to: `WHERE \${HELD} FOR SHARE` }],
    tests: ['test/contract/locks.test.ts'],
  },
  {
    name: 'decide about a record that was taken meanwhile',
    file: 'src/store/postgres/sql/decisions.ts',
    edits: [{ from: 'AND r.fence = $4::bigint AND', to: 'AND $4::bigint > 0 AND' }],
    tests: ['test/contract/operator.test.ts'],
  },
  {
    name: 'note a decision in the audit that was not taken',
    file: 'src/store/postgres/sql/decisions.ts',
    edits: [
      { from: 'decided.fence, $19::text\nFROM decided', to: '$4::bigint, $19::text\nFROM (SELECT) AS noted' },
    ],
    tests: ['test/contract/operator.test.ts'],
  },
  {
    name: 'write the audit outside of the transaction of its decision',
    file: 'src/store/postgres/decisions.ts',
    edits: [
      {
        from: `await inTurn(() => this.#connections.runBounded(bind(decide, ...values)))`,
        to: `await apart(this.#connections, decide.text, (statement) => bind(statement, ...values))`,
      },
      {
        from: `const NO_REPLY =`,
        to: `async function apart(connections, text, bound) {
  const update = text.replace(/\\)\\s*INSERT[^]*$/, ') SELECT fence, $14::text, $15::text, $16::text FROM decided')
  const unused = '$5::text, $8::text, $9::text, $10::text, $11::bytea, $12::text, $13::text, $20::text'
  const insert = text.replace(/UPDATE[^]*?RETURNING r.fence/, () => 'SELECT $4::bigint AS fence, ' + unused)
  const { rows } = await connections.runBounded(bound({ text: update, name: 'update_alone' }))
  if (rows.at(-1).length === 0) return { rows }
  return await connections.runBounded(bound({ text: insert, name: 'insert_alone' }))
}
const NO_REPLY =`,
      },
    ],
    tests: ['test/contract/operator.test.ts'],
  },
  {
    name: 'store the reply of an operator in the clear',
    file: 'src/store/sealed.ts',
    edits: [
      {
        from: 'inner.decide({ ...request, to: this.#sealingStep(request) }, tx)',
        to: 'inner.decide(request, tx)',
      },
    ],
    tests: ['test/contract/operator.test.ts'],
  },
  {
    name: 'take a decision beside the transaction that it was to join',
    file: 'src/store/postgres/decisions.ts',
    edits: [{ from: 'if (tx !== undefined) return', to: 'if (tx === null) return' }],
    tests: ['test/contract/operator-within.test.ts'],
    only: 'falls with it',
  },
  {
    name: 'give up a request of which nobody knows whether it took effect',
    file: 'src/operator/decide.ts',
    edits: [
      { from: `if (from?.state !== 'retryable') return null`, to: `if (from === undefined) return null` },
    ],
    tests: ['test/contract/operator-within.test.ts'],
    only: 'leaves alone',
  },
  {
    name: 'let an operator store headers that are never replayed',
    file: 'src/protect/sendable.ts',
    edits: [{ from: 'isNeverKept(lower)', to: 'isNeverKept(lower) && false' }],
    tests: ['test/contract/operator.test.ts'],
  },
  {
    name: 'leave an embedded server behind a process that was killed',
    file: 'src/store/embedded/watchdog.ts',
    edits: [{ from: `if (isAdopted() || !isServer()) process.exit()`, to: `process.exit()` }],
    tests: ['src/store/embedded/watchdog.faults.test.ts'],
    only: 'ends soon',
  },
  {
    name: 'end an embedded server that the next start has adopted',
    file: 'src/store/embedded/watchdog.ts',
    edits: [{ from: `if (isAdopted() || !isServer())`, to: `if (!isServer())` }],
    tests: ['src/store/embedded/watchdog.faults.test.ts'],
    only: 'ends soon',
  },
]
