import type { Mutant } from './mutants.ts'

const HANDLER = 'test/contract/handler.test.ts'
const TROUBLE = 'test/contract/handler-clock.test.ts'
const GROUP = 'test/contract/group-commit.test.ts'
const LATE = 'test/contract/late-reply.test.ts'
const EDGES = 'test/contract/handler-lease.test.ts'

/** Faults in handlers, their leases, and the commits that they share. */
export const HANDLER_MUTANTS: readonly Mutant[] = [
  {
    name: 'let the caller of a handler that never ends wait for ever',
    file: 'src/protect/handler.ts',
    edits: [
      {
        from: `end = await inTime(ended, maxMs, NO_ANSWER, (timer) => running.waitsBy(owned, timer))`,
        to: `end = await (maxMs > 0 ? ended : inTime(ended, maxMs, NO_ANSWER))`,
      },
    ],
    tests: [EDGES],
    only: 'keeps nobody in its own process waiting',
  },
  {
    name: 'give signs of life for a record of another owner',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [
      {
        from: `WHERE \${ANSWERED} AND (state = 'in_progress' OR $6::float8 > 0)`,
        to: `WHERE account = $1 AND operation = $2 AND key = $3 AND $4::bigint > 0 AND $5 <> '' AND state = 'in_progress'`,
      },
    ],
    tests: ['src/store/postgres/conformance.test.ts'],
    only: 'turns the late owner away',
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
    file: 'src/protect/handler-claim.ts',
    edits: [
      {
        from: `      if (unanswered || tries > 0) giveBack(store, request, claimant, running)\n      throw error`,
        to: `      return { decision: { kind: 'run', from: 'none', record: { fence: 1 } as never }, fresh }`,
      },
    ],
    tests: [TROUBLE],
  },
  {
    name: 'complete the record of another owner in a group',
    file: 'src/store/postgres/sql/group.ts',
    edits: [
      { from: ` AND r.fence = k.fence`, to: ` AND k.fence > 0` },
      { from: `AND r.attempt_id = k.attempt_id `, to: `` },
    ],
    tests: [GROUP],
    only: 'keeps old owners out',
  },
  {
    name: 'let a group wait for a blocked key',
    file: 'src/core/limits.ts',
    edits: [{ from: `lockWaitGroupMs: 10,`, to: `lockWaitGroupMs: 60_000,` }],
    tests: [GROUP],
    only: 'waits for nobody but its own',
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
    only: 'waits for nobody but its own',
  },
  {
    name: 'let everybody wait for a connection that has fallen silent',
    file: 'src/core/limits.ts',
    edits: [{ from: `batchWaitMaxMs: 25,`, to: `batchWaitMaxMs: 60_000,` }],
    tests: [GROUP],
    only: 'waits for nobody but its own',
  },
  {
    name: 'give signs of life for ever',
    file: 'src/protect/heartbeat.ts',
    edits: [
      { from: `const leftMs = this.#end.leftMs`, to: `const leftMs = this.#leaseMs` },
      { from: `Math.min(inMs, this.#end.leftMs, `, to: `Math.min(inMs, ` },
    ],
    tests: ['src/protect/heartbeat.test.ts'],
  },
  {
    name: 'give no signs of life',
    file: 'src/protect/heartbeat.ts',
    edits: [
      {
        from: `this.#onBeat = onBeat
    this.#plan(this.#leaseMs / 3)`,
        to: `this.#onBeat = onBeat`,
      },
    ],
    tests: [HANDLER],
    only: 'keeps its lease alive',
  },
  {
    name: 'run a handler again whose owner vanished',
    // Both the claim and the kind of the record stand against it: one of them alone is enough.
    file: 'src/record/transitions.ts',
    edits: [
      {
        from: `claim.takeover === 'resume' && mayFollow(record.kind, claim.claimant.kind)`,
        to: `claim.sameRequest`,
      },
    ],
    tests: ['test/torture/leases.test.ts'],
  },
  {
    name: 'run a handler again that threw',
    file: 'src/protect/handler.ts',
    edits: [{ from: `end.end === 'threw' && rerunnable)`, to: `end.end === 'threw')` }],
    tests: [HANDLER],
  },
  {
    name: 'say that nothing happened when the save failed',
    file: 'src/protect/in-time.ts',
    edits: [
      {
        from: `reject(new OnlyonceError('outcome_unknown', told))`,
        to: `reject(new OnlyonceError('not_executed', told as never))`,
      },
    ],
    tests: [HANDLER],
    only: 'whose save fails',
  },
  {
    name: 'keep the leases of what still runs at close',
    file: 'src/onlyonce/engine.ts',
    edits: [{ from: `    this.observers.cutOff(await this.#running.handOver(this.store))\n`, to: `` }],
    tests: [HANDLER],
  },
  {
    name: 'close: do not wait for the last sign of life of an operation',
    file: 'src/protect/running.ts',
    edits: [{ from: `    if (heartbeat?.underWay) void this.saving(heartbeat.quiet())\n`, to: `` }],
    tests: ['test/contract/close-hands-over.test.ts'],
    only: 'last one of an operation',
  },
  {
    name: 'close: do not wait until the record of a handler says that its time is over',
    file: 'src/protect/handler.ts',
    edits: [{ from: `void running.saving(leaveInDoubt(`, to: `void (leaveInDoubt(` }],
    tests: ['test/contract/close-hands-over.test.ts'],
    only: 'until the record says',
  },
  {
    name: 'close: hand a lease over beside a sign of life that is under way',
    file: 'src/protect/heartbeat.ts',
    edits: [{ from: `    if (this.underWay) await atMost(LIMITS.poolEndMaxMs, this.quiet())\n`, to: `` }],
    tests: ['src/protect/heartbeat.test.ts'],
  },
  {
    name: 'take a proof out of a nested call for one of the call around it',
    file: 'src/protect/proof.ts',
    edits: [{ from: ` && !spent.has(error)`, to: `` }],
    tests: [EDGES],
  },
  {
    name: 'begin the work after the lease has run out',
    file: 'src/protect/handler.ts',
    edits: [{ from: `  if (fresh.passed) await confirm(store, request, owned, running)\n`, to: `` }],
    tests: [EDGES],
    only: 'does not begin when its lease ran out',
  },
  {
    name: 'let those who wait for blocked keys take every connection',
    file: 'src/store/postgres/connections.ts',
    edits: [{ from: `this.finishing > this.waitersMax ? WAIT_A_MOMENT : this.#wait`, to: `this.#wait` }],
    tests: [EDGES],
    only: 'as many blocked keys',
  },
  {
    name: 'wait for ever for a flight that never lands',
    file: 'src/protect/single-flight/flights.ts',
    edits: [{ from: `await Promise.race([landed, over])`, to: `await landed` }],
    tests: [EDGES],
    only: 'waiting for ever',
  },
  {
    name: 'run work whose claim was answered after the end',
    file: 'src/protect/running.ts',
    edits: [{ from: `if (this.#over) return false`, to: `if (this.#over) return true` }],
    tests: ['test/contract/close-hands-over.test.ts'],
  },
  {
    name: 'throw the reply of an owner away that was given up',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [
      {
        from: `\n  OR (state IN ('unknown', 'parked') AND \${KIND} <> 'o' AND decided IS NOT TRUE))`,
        to: `)`,
      },
    ],
    tests: ['src/store/postgres/conformance.test.ts'],
    only: 'takes the late reply',
  },
  {
    name: 'let an owner overrule an operator',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [{ from: ` AND decided IS NOT TRUE`, to: `` }],
    tests: [LATE],
    only: 'when an operator has decided',
  },
  {
    name: "take an operator's reply for the owner's own",
    file: 'src/store/postgres/owner.ts',
    edits: [{ from: ` && !record.decided`, to: `` }],
    tests: [LATE],
    only: 'when an operator has decided',
  },
  {
    name: 'keep operators from a record whose owner vanished',
    file: 'src/operator/decide.ts',
    edits: [{ from: ` && record.leaseUntil > seen!.now`, to: `` }],
    tests: [LATE],
    only: 'when an operator has decided',
  },
  {
    name: 'forget until when an owner that vanished may have called',
    file: 'src/store/postgres/sql/decisions.ts',
    edits: [{ from: `THEN greatest(sent_until, lease_until) ELSE`, to: `THEN sent_until ELSE` }],
    tests: [LATE],
    only: 'keeps until when it may have called',
  },
  {
    name: 'throw away the reply of a handler that the route has given up',
    file: 'src/protect/handler.ts',
    edits: [{ from: `if (!failed) await save(`, to: `if (failed) await save(` }],
    tests: [LATE],
    only: 'the route has given the handler up',
  },
  {
    name: 'recover: let two processes look at once',
    file: 'src/store/postgres/sql/recovery.ts',
    edits: [
      {
        from: `AND coalesce(looks, 0) = $6::int\n  AND coalesce(look_at, clock_timestamp()) <= clock_timestamp()`,
        to: `AND $6::int >= 0`,
      },
    ],
    tests: ['src/store/postgres/conformance.test.ts'],
    only: 'gives a look to one of many',
  },
  {
    name: 'recover: write the answer of a look that another has followed',
    file: 'src/store/postgres/sql/recovery.ts',
    edits: [
      {
        from: `AND coalesce(looks, 0) = $6::int\nRETURNING state`,
        to: `AND coalesce(looks, 0) >= $6::int\nRETURNING state`,
      },
    ],
    tests: ['src/store/postgres/conformance.test.ts'],
    only: 'takes the word of the last look',
  },
  {
    name: 'recover: take "cannot tell" for "it did not happen"',
    file: 'src/protect/recover.ts',
    edits: [{ from: `return { end: 'later', failure: CANNOT_TELL }`, to: `return { end: 'void' }` }],
    tests: ['test/contract/recover.test.ts'],
    only: 'only when recover says that it is void',
  },
  {
    name: 'recover: park what another process can ask about',
    file: 'src/protect/recovery.ts',
    edits: [{ from: `if (elsewhere && !orphaned) return false`, to: `` }],
    tests: ['test/contract/recover.test.ts'],
    only: 'left to the processes that have its recover',
  },
  {
    name: 'recover: let the owner overrule what recover has decided',
    file: 'src/store/postgres/sql/recovery.ts',
    edits: [
      { from: `decided = CASE WHEN $7 IN ('completed', 'retryable') THEN true END`, to: `decided = NULL` },
    ],
    tests: ['test/contract/recover.test.ts'],
    only: 'answered with what recover finds',
  },
  {
    name: 'background: do again what workers of the process do',
    file: 'src/onlyonce/background.ts',
    edits: [{ from: `names === 'all' || names.includes(name)`, to: `names === 'all' && name === ''` }],
    tests: ['test/contract/background.test.ts'],
    only: 'leaves its duties to workers',
  },
]
