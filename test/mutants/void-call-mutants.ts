import type { Mutant } from './mutants.ts'

const VOID = 'src/operation/void-calls.ts'
const SITE = 'src/operation/call-site.ts'
const DECIDE = 'src/store/postgres/sql/decisions.ts'
const SQL = 'src/store/postgres/sql/operations.ts'

const CALLS = 'test/operations/void-calls.test.ts'
const HAPPENED = 'test/operations/void-happened.test.ts'
const DECISION = 'test/operations/void-decision.test.ts'
const EARLIER = 'test/operations/earlier-version.test.ts'

/** Faults in what becomes of a call that an operator has declared void, and of the call in its place. */
export const VOID_CALL_MUTANTS: readonly Mutant[] = [
  {
    name: 'void call: make the next call with the same key',
    file: SITE,
    edits: [{ from: `if (!voidCalls.includes(key)) return`, to: `if (generation === 0) return` }],
    tests: [CALLS],
    only: 'is given a new key once',
  },
  {
    name: 'void call: give every retry that is allowed a new key',
    file: 'src/operator/decide.ts',
    edits: [{ from: `given.earlierCallIsVoid !== true`, to: `seen!.waitsFor === null` }],
    tests: [CALLS],
    only: 'gives it again to every retry',
  },
  {
    name: 'void call: make the new call without asking about the earlier one',
    file: 'src/operation/foreign.ts',
    edits: [{ from: `if (before !== null) return before`, to: `if (before === undefined) return before` }],
    tests: [HAPPENED],
    only: 'counts, where',
  },
  {
    name: 'void call: take an answer of another form for "not found"',
    file: 'src/operation/asking.ts',
    edits: [{ from: `return asFound(found)`, to: `return (found ?? {}) as Found<unknown>` }],
    tests: [CALLS],
    only: 'after an answer of another form',
  },
  {
    name: 'void call: do not ask about the earlier one when the new one is made',
    file: 'src/operation/foreign.ts',
    edits: [
      {
        from: `end.end === 'result' ? await voidAfter(uncheckedStep(given), site, timeoutMs, end) : end`,
        to: `end`,
      },
    ],
    tests: [HAPPENED],
    only: 'shows while the new call is made',
  },
  {
    name: 'void call: take the earlier one for the result while the new one may have been made',
    file: VOID,
    edits: [{ from: `return inDoubt ? happened('MAYBE', null, site.key) : {`, to: `return {` }],
    tests: [HAPPENED],
    only: 'outcome of the new call is in doubt',
  },
  {
    name: 'void call: make the new call while the other side decides about the earlier one',
    file: VOID,
    edits: [{ from: `truth?.status === 'pending'`, to: `truth?.status === 'found'` }],
    tests: [CALLS],
    only: 'does not tell about the earlier one: pending',
  },
  {
    name: 'void call: make the new call while nobody can be asked about the earlier one',
    file: VOID,
    edits: [{ from: `truth === null && find !== undefined`, to: `truth !== null && find === undefined` }],
    tests: [CALLS],
    only: 'does not tell about the earlier one: away',
  },
  {
    name: 'void call: forget that a call which was not begun was not begun',
    file: SITE,
    edits: [{ from: `unproved && !voidKeys.includes(attempt.resumed?.waitedFor ?? '')`, to: `unproved` }],
    tests: [CALLS],
    only: 'does not tell about the earlier one: pending',
  },
  {
    name: 'void call: lose the result of the new call when the earlier one has happened',
    file: 'src/operation/run.ts',
    edits: [{ from: `&& end.made !== null) this.#took`, to: `&& end.made === undefined) this.#took` }],
    tests: [HAPPENED],
    only: 'shows while the new call is made',
  },
  {
    name: 'void call: count the lifetime of the new key from that of the earlier one',
    file: DECIDE,
    edits: [
      { from: `point_at = CASE WHEN $19::text IS NULL THEN point_at END`, to: `point_at = r.point_at` },
    ],
    tests: [CALLS],
    only: 'counts the lifetime of each key',
  },
  {
    name: 'void call: declare a call void without a word to those who bring evidence',
    file: DECIDE,
    edits: [{ from: `FROM decided WHERE $19::text IS NOT NULL`, to: `FROM decided WHERE $19::text IS NULL` }],
    tests: [HAPPENED],
    only: 'raises the alarm when the record is removed',
  },
  {
    name: 'void call: let evidence about an earlier call wait for the next look',
    file: 'src/store/postgres/evidence.ts',
    edits: [
      { from: `  await connections.runBounded(bind(hurryRecord, account, id.operation, id.key))\n`, to: `` },
    ],
    tests: [HAPPENED],
    only: 'outcome of the new call is in doubt',
  },
  {
    name: 'void call: overlook evidence that came before the doubt was written down',
    file: SQL,
    edits: [{ from: `OR (call_key = ANY (void_calls) AND received_at >= attempted_at)`, to: `` }],
    tests: [HAPPENED],
    only: 'between the last question and the doubt',
  },
  {
    name: 'void call: use the looks at one step up because of evidence about another',
    file: SQL,
    edits: [{ from: ` AND received_at >= attempted_at`, to: `` }],
    tests: [HAPPENED],
    only: 'looks at a later step',
  },
  {
    name: 'void call: raise the alarm for a request of a later life',
    file: 'src/store/postgres/sql/evidence.ts',
    edits: [{ from: `(v.call_key = ANY (r.void_calls)) IS NOT TRUE`, to: `false` }],
    tests: [HAPPENED],
    only: 'later life',
  },
  {
    name: 'void call: keep the voids of an earlier life',
    file: SQL,
    edits: [
      {
        from: `void_calls = CASE WHEN r.state = 'expired' THEN NULL ELSE r.void_calls END`,
        to: `void_calls = r.void_calls`,
      },
    ],
    tests: [HAPPENED],
    only: 'later life',
  },
  {
    name: 'void call: forget which call a parked record waits for',
    file: SQL,
    edits: [
      {
        from: `waits_for = $8, \${WAITS_STEP}, retention_ms = greatest(`,
        to: `waits_for = left($8, 0), \${WAITS_STEP}, retention_ms = greatest(`,
      },
    ],
    tests: [CALLS],
    only: 'is given a new key once',
  },
  {
    name: 'void call: declare void what is not waited for',
    file: 'src/operator/decide.ts',
    edits: [{ from: `if (voidCalls.includes(waitsFor))`, to: `if (voidCalls.length < 0)` }],
    tests: [CALLS],
    only: 'does not tell about the earlier one: away',
  },
  {
    name: 'void call: have no bound',
    file: 'src/operator/decide.ts',
    edits: [{ from: `voidCalls.length >= LIMITS.voidCallsMax`, to: `voidCalls.length < 0` }],
    tests: [DECISION],
    only: 'has a bound',
  },
  {
    name: 'void call: let an earlier version take such a record',
    file: 'migrations/0008_void_calls.sql',
    edits: [{ from: `AND taken_by IS DISTINCT FROM attempt_id THEN`, to: `AND attempt_id IS NULL THEN` }],
    tests: [EARLIER],
    only: 'when it is retryable',
  },
  {
    name: 'void call: let an earlier version take such a record from an owner of this one',
    file: 'migrations/0008_void_calls.sql',
    edits: [{ from: `AND taken_by IS DISTINCT FROM attempt_id THEN`, to: `AND taken_by IS NULL THEN` }],
    tests: [EARLIER],
    only: 'has vanished',
  },
  {
    name: 'void call: refuse an earlier version by an error that it does not know',
    file: 'migrations/0008_void_calls.sql',
    edits: [{ from: `USING ERRCODE = '55P03'`, to: `USING ERRCODE = '23514'` }],
    tests: [EARLIER],
    only: 'left for that of this version',
  },
  {
    name: 'void call: keep an earlier version from starting',
    file: 'migrations/0008_void_calls.sql',
    edits: [{ from: `-- requires: 1\n`, to: `-- requires: 8\n` }],
    tests: [EARLIER],
    only: 'lets it in',
  },
  {
    name: 'void call: keep the voids of an earlier life in a handler',
    file: 'src/store/postgres/sql/claim.ts',
    edits: [
      {
        from: `void_calls = CASE WHEN r.state = 'expired' THEN NULL ELSE r.void_calls END`,
        to: `void_calls = r.void_calls`,
      },
    ],
    tests: [EARLIER],
    only: 'later life',
  },
  {
    name: 'void call: take the kind of an attempt for that of an earlier version behind it',
    file: 'src/store/postgres/sql/columns.ts',
    edits: [{ from: ` AND (\${r}.fence = 1 OR \${r}.taken_by = \${r}.attempt_id)`, to: `` }],
    tests: [EARLIER],
    only: 'what the attempt before it',
  },
  {
    name: 'recover: take the kind of the attempt before for that of a vanished owner',
    file: 'src/store/postgres/sql/recovery.ts',
    edits: [{ from: `const KIND = presentKind('r')`, to: `const KIND = 'r.kind::text'` }],
    tests: [EARLIER],
    only: 'what the attempt before it',
  },
  {
    name: 'recover: overlook what an earlier version left in doubt',
    file: 'src/store/postgres/sql/recovery.ts',
    edits: [{ from: `r.state = 'unknown' AND r.look_at IS NULL)`, to: `r.state = 'expired')` }],
    tests: [EARLIER],
    only: 'no time for a look',
  },
  {
    name: 'void call: drop what an operator says over HTTP',
    file: 'apps/payments/payments/decisions.ts',
    edits: [{ from: `, earlierCallIsVoid: true })`, to: ` })` }],
    tests: ['apps/payments/test/api-ops-records.test.ts'],
    only: 'under a new key',
  },
  {
    name: 'void call: send a new one although what was told about the earlier one is unclear',
    file: 'src/operation/asking.ts',
    edits: [{ from: `if (site.voidKeys.includes(callKey)) return { status: 'pending' }`, to: `` }],
    tests: ['test/operations/result-check.test.ts'],
    only: 'about a void call',
  },
]
