import type { Mutant } from './mutants.ts'

const HANDLER = 'test/contract/handler.test.ts'
const TROUBLE = 'test/contract/handler-trouble.test.ts'
const GROUP = 'test/contract/group-commit.test.ts'

/** Faults in handlers, their leases, and the commits that they share. */
export const HANDLER_MUTANTS: readonly Mutant[] = [
  {
    name: 'give signs of life without the fence',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [
      {
        from: `SET lease_until = clock_timestamp() + \${interval('$5')}\nWHERE \${OWNED}`,
        to: `SET lease_until = clock_timestamp() + \${interval('$5')}
WHERE account = $1 AND operation = $2 AND key = $3 AND $4::bigint > 0 AND state = 'in_progress'`,
      },
    ],
    tests: ['src/store/postgres/conformance.test.ts', HANDLER],
  },
  {
    name: 'judge leases by the clock of the process',
    file: 'src/store/postgres/claims.ts',
    edits: [
      {
        from: `const { record, now } = readRecord(row)`,
        to: `const { record } = readRecord(row)\n      const now = Date.now()`,
      },
    ],
    tests: [TROUBLE],
  },
  {
    name: 'fail open when the claim fails',
    file: 'src/protect/handler.ts',
    edits: [
      {
        from: `if (!passing || !(await deadline.backOff(tries))) throw error`,
        to: `if (!passing || !(await deadline.backOff(tries)))
        return { kind: 'run', from: 'none', record: { fence: 1 } as never }`,
      },
    ],
    tests: [TROUBLE],
  },
  {
    name: 'complete in a group without the fence',
    file: 'src/store/postgres/sql/group.ts',
    edits: [{ from: ` AND r.fence = k.fence`, to: ` AND k.fence > 0` }],
    tests: [GROUP],
  },
  {
    name: 'let a group wait for a blocked key',
    file: 'src/limits.ts',
    edits: [{ from: `lock_wait_group_ms: 10,`, to: `lock_wait_group_ms: 60_000,` }],
    tests: [GROUP],
  },
  {
    name: 'let a group fail for one of its writes',
    file: 'src/store/postgres/group.ts',
    edits: [
      {
        from: `else await Promise.all(batch.map(runAlone))`,
        to: `else for (const { reject } of batch) reject(error)`,
      },
    ],
    tests: [GROUP],
  },
  {
    name: 'let everybody wait for a connection that has fallen silent',
    file: 'src/limits.ts',
    edits: [{ from: `batch_wait_max_ms: 25,`, to: `batch_wait_max_ms: 60_000,` }],
    tests: [GROUP],
  },
  {
    name: 'give signs of life for ever',
    file: 'src/protect/heartbeat.ts',
    edits: [{ from: `const left_ms = this.#end.left_ms`, to: `const left_ms = this.#lease_ms` }],
    tests: [HANDLER],
  },
  {
    name: 'give no signs of life',
    file: 'src/protect/heartbeat.ts',
    edits: [{ from: `this.#onLost = onLost\n    this.#plan()`, to: `this.#onLost = onLost` }],
    tests: [HANDLER],
  },
  {
    name: 'run a handler again whose owner vanished',
    file: 'src/protect/handler.ts',
    edits: [{ from: `const takeover = rerunnable ? 'resume' : 'doubt'`, to: `const takeover = 'resume'` }],
    tests: ['test/torture/leases.test.ts'],
  },
  {
    name: 'run a handler again that threw',
    file: 'src/protect/handler.ts',
    edits: [{ from: `return rerunnable\n        ?`, to: `return rerunnable || true\n        ?` }],
    tests: [HANDLER],
  },
  {
    name: 'say that nothing happened when the save failed',
    file: 'src/protect/handler.ts',
    edits: [
      {
        from: `throw new OnlyonceError('outcome_unknown', { cause: error })`,
        to: `throw new OnlyonceError('not_executed', { cause: error })`,
      },
    ],
    tests: [HANDLER],
  },
  {
    name: 'keep the leases of what still runs at close',
    file: 'src/engine.ts',
    edits: [{ from: `    await this.#handOver()\n`, to: `` }],
    tests: [HANDLER],
  },
]
