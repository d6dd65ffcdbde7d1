import type { Mutant } from './mutants.ts'

const FOREIGN = 'src/operation/foreign.ts'
const RUN = 'src/operation/run.ts'
const SITE = 'src/operation/call-site.ts'
const ASKING = 'src/operation/asking.ts'
const HOLD = 'src/operation/hold.ts'
const SQL = 'src/store/postgres/sql/operations.ts'

const OWNERS = 'test/operations/lost-ownership.faults.test.ts'
const CALLS = 'test/operations/call-results-kept.test.ts'
const MORE_CALLS = 'test/operations/call-before-call.test.ts'
const VERSIONS = 'test/operations/versions.test.ts'
const WORKERS = 'test/operations/workers.test.ts'

/** Faults in the calls of durable operations: when they may be sent, sent again, and taken for not sent. */
export const OPERATION_CALL_MUTANTS: readonly Mutant[] = [
  {
    name: 'operation: make the next call before the result of the last is durable',
    file: RUN,
    edits: [{ from: `    if (this.#steps.pending) await this.#commit()\n    await`, to: `    await` }],
    tests: [MORE_CALLS],
    only: 'durable before the next',
  },
  {
    name: 'operation: call again without asking when the owner before is gone',
    file: HOLD,
    edits: [
      {
        from: `this.resumed = attempt.from === 'in_progress' || attempt.from === 'unknown'`,
        to: `this.resumed = attempt.from === 'unknown'`,
      },
    ],
    tests: [MORE_CALLS],
    only: 'owner is gone in the middle of a call',
  },
  {
    name: 'operation: call again where the other side does not dedupe',
    file: FOREIGN,
    edits: [
      {
        from: `      if (!idempotent) return doubtful('call_in_doubt', describe(known, last))
`,
        to: ``,
      },
    ],
    tests: ['test/operations/basics.test.ts'],
    only: 'never charged twice',
  },
  {
    name: 'operation: call again while the other side decides',
    file: FOREIGN,
    edits: [{ from: `truth?.status === 'pending'`, to: `truth?.status === 'pending' && !dedupes` }],
    tests: [CALLS],
    only: 'shorter lease',
  },
  {
    name: 'operation: call again when the other side may have forgotten the key',
    file: FOREIGN,
    edits: [{ from: `site.keyAgeMs() + timeoutMs >= keyLifetimeMs`, to: `keyLifetimeMs < 0` }],
    tests: [OWNERS],
    only: 'the lifetime of a key',
  },
  {
    name: 'operation: count the lifetime of a key from the last takeover',
    file: SQL,
    edits: [{ from: `ELSE coalesce(r.point_at, clock_timestamp()) END`, to: `ELSE clock_timestamp() END` }],
    tests: [OWNERS],
    only: 'the lifetime of a key',
  },
  {
    name: 'operation: send another key in each attempt',
    file: SITE,
    edits: [
      {
        from: `callKeys({ ...id, step }`,
        to: `callKeys({ ...id, step: \`\${step} \${hold.owned?.fence}\` }`,
      },
    ],
    tests: [VERSIONS],
    only: 'makes the same call',
  },
  {
    name: 'operation: send another key in each version',
    file: SITE,
    edits: [
      {
        from: `callKeys({ ...id, step }`,
        to: `callKeys({ ...id, step: \`\${step}@\${attempt.head.version}\` }`,
      },
    ],
    tests: [VERSIONS],
    only: 'live side by side',
  },
  {
    name: 'operation: call without looking whether the record is still ours',
    file: FOREIGN,
    edits: [
      {
        from: `    await site.holdFor(timeoutMs)
    try {
      site.crashPoint('operation.call.before')`,
        to: `    try {\n      site.crashPoint('operation.call.before')`,
      },
    ],
    tests: [OWNERS],
    only: 'sends nothing',
  },
  {
    name: 'operation: call on a lease that does not outlast the call',
    file: HOLD,
    edits: [{ from: `if (this.#lease.leftMs > ms) return`, to: `if (this.#lease.leftMs > 0) return` }],
    tests: [OWNERS],
    only: 'not believed to be longer',
  },
  {
    name: 'operation: begin calls after the deadline of the request',
    file: 'src/operation/run-operation.ts',
    edits: [
      {
        from: `resumed.deadlineInMs ?? inProgressMaxMs, inProgress`,
        to: `inProgressMaxMs, inProgress`,
      },
    ],
    tests: [WORKERS],
    only: 'begins no call after the deadline',
  },
  {
    name: 'operation: take "not found" for a proof before the settle window is over',
    file: FOREIGN,
    edits: [{ from: `sentAgeMs !== null && sentAgeMs >= visibleWithinMs`, to: `sentAgeMs !== null` }],
    tests: [WORKERS],
    only: 'begins no call after the deadline',
  },
  {
    name: 'operation: take "not found" for a proof about a call that was sent just now',
    file: FOREIGN,
    edits: [{ from: `const settled = !known.sentHere && sentAgeMs`, to: `const settled = sentAgeMs` }],
    tests: [CALLS],
    only: 'this very attempt',
  },
  {
    name: 'operation: take "nobody there to ask" for "not found"',
    file: ASKING,
    edits: [
      { from: `"not found".\n    return null`, to: `"not found".\n    return { status: 'not_found' }` },
    ],
    tests: [MORE_CALLS],
    only: 'nobody there to ask',
  },
  {
    name: 'operation: count the settle window from when the last owner began',
    file: SQL,
    edits: [{ from: `greatest(r.sent_until, r.lease_until)`, to: `greatest(r.sent_until, r.attemptedAt)` }],
    tests: [MORE_CALLS],
    only: 'settle window begins',
  },
  {
    name: 'operation: forget when an earlier owner may have sent a call',
    file: SQL,
    edits: [{ from: `greatest(r.sent_until, r.lease_until)`, to: `r.sent_until` }],
    tests: [WORKERS],
    only: 'when the settle window is over',
  },
  {
    name: 'operation: take a call that was not executed for a proof about the one before',
    file: FOREIGN,
    edits: [
      {
        from: `      if (!refused && !provesNothingDone(error)) {
        known.inDoubt = true`,
        to: `      known.inDoubt = !refused && !provesNothingDone(error)
      if (known.inDoubt) {`,
      },
    ],
    tests: [MORE_CALLS],
    only: 'says nothing about the one before',
  },
  {
    name: 'operation: take a store that is away for a proof that nothing was sent',
    file: FOREIGN,
    edits: [
      {
        from: `if (lost || !known.inDoubt) throw error`,
        to: `if (lost || !known.sentHere || !lost) throw error`,
      },
    ],
    tests: [CALLS],
    only: 'fails to tell its evidence',
  },
  {
    name: 'operation: ask again where others have told already',
    file: ASKING,
    edits: [
      {
        from: `if (evidence !== null) return`,
        to: `if (evidence !== null && step.find === undefined) return`,
      },
    ],
    tests: [WORKERS],
    only: 'what others told',
  },
  {
    name: 'operation: let a later word about a call replace the first',
    file: 'src/store/postgres/sql/evidence.ts',
    edits: [
      {
        from: `WHERE e.received_at < clock_timestamp() - `,
        to: `WHERE e.received_at <= clock_timestamp() OR e.receivedAt < clock_timestamp() - `,
      },
    ],
    tests: [WORKERS],
    only: 'what others told',
  },
  {
    name: 'operation: let what others told wait for the next look',
    file: 'src/store/postgres/evidence.ts',
    edits: [
      {
        from: `  await connections.runBounded(bind(hurry, account, callKey))
`,
        to: ``,
      },
    ],
    tests: [WORKERS],
    only: 'what others told',
  },
  {
    name: 'operation: take a refusal for good for an outcome in doubt',
    file: FOREIGN,
    edits: [{ from: `error instanceof OnlyonceError && error.code === 'call_refused'`, to: `false` }],
    tests: ['test/operations/saga.test.ts'],
    only: 'one that is refused is parked',
  },
  {
    name: 'in doubt: begin the doubt about a call anew with every look',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [{ from: `THEN waits_since ELSE`, to: `THEN clock_timestamp() ELSE` }],
    tests: ['test/operations/in-doubt-shown.test.ts'],
    only: 'since when, which looks',
  },
  {
    name: 'in doubt: believe a step that an earlier version has left',
    file: 'src/onlyonce/explain.ts',
    edits: [{ from: `generations.find((one) => keyOf(one) === key)`, to: `generations[0]` }],
    tests: ['test/operations/in-doubt-shown.test.ts'],
    only: 'no stale one',
  },
  {
    name: 'kept: send a call before it is durable how long its record is needed',
    file: 'src/operation/hold.ts',
    edits: [
      { from: `if (retentionMs <= this.#keptMs) return`, to: `if (retentionMs >= this.#keptMs) return` },
    ],
    tests: ['test/operations/kept-long.test.ts'],
    only: 'an operator gave',
  },
  {
    name: 'kept: let a retry shorten how long a record is kept',
    file: 'src/store/postgres/sql/operations.ts',
    edits: [
      {
        from: `ELSE greatest($16::bigint, r.retention_ms) END`,
        to: `ELSE coalesce($16::bigint, r.retention_ms) END`,
      },
    ],
    tests: ['test/operations/kept-long.test.ts'],
    only: 'a retry that asks for less',
  },
  {
    name: 'lease: undo an operation because the lease of a worker is short',
    file: 'src/operation/run.ts',
    edits: [
      {
        from: `const short = maybeSent ? null : tooShortFor(step, site)`,
        to: `const short = maybeSent ? tooShortFor(step, site) : null`,
      },
    ],
    tests: ['test/operations/worker-lease.test.ts'],
    only: 'undoes nothing',
  },
  {
    name: 'take evidence for the result of a call without the check of its step',
    file: 'src/operation/asking.ts',
    edits: [{ from: `if (step.result === undefined) return`, to: `if (step.result !== null) return` }],
    tests: ['test/operations/result-check.test.ts'],
    only: 'can be corrected',
  },
  {
    name: 'let evidence that was refused keep its correction out',
    file: 'src/operation/asking.ts',
    edits: [
      {
        from: `  await site.refuseEvidence(callKey, told.receivedAt)
`,
        to: ``,
      },
    ],
    tests: ['test/operations/result-check.test.ts'],
    only: 'can be corrected',
  },
  {
    name: 'make the result of a call durable without the check of its step',
    file: 'src/operation/foreign.ts',
    edits: [{ from: `const step = checkedStep(given)`, to: `const step = given` }],
    tests: ['test/operations/result-check.test.ts'],
    only: 'does not become durable',
  },
]
