import type { Mutant } from './mutants.ts'

const SQL = 'src/store/postgres/sql/operations.ts'
const OPEN = 'src/operation/open-call.ts'
const RUN = 'src/operation/run.ts'
const HOLD = 'src/operation/hold.ts'

const KEPT = 'test/operations/doubt-kept.test.ts'
const TOLD = 'test/operations/looks-told.test.ts'
const EVIDENCE = 'test/operations/evidence-signed.test.ts'
const DECIDED = 'test/truth/decided.test.ts'

/** Faults in what stays known of a call in doubt, and of what an operator has decided. */
export const DOUBT_KEPT_MUTANTS: readonly Mutant[] = [
  {
    name: 'doubt kept: forget the call when a look begins',
    file: SQL,
    edits: [{ from: `THEN NULL ELSE r.waits_for END`, to: `THEN NULL END` }],
    tests: [KEPT],
    only: 'while its looks vanish',
  },
  {
    name: 'doubt kept: keep a void call while the one in its place may be sent',
    file: SQL,
    edits: [{ from: ` OR r.waits_for = ANY (r.void_calls) THEN NULL`, to: ` THEN NULL` }],
    tests: [KEPT],
    only: 'in place of a void one',
  },
  {
    name: 'doubt kept: do not know the call that was to be sent in place of a void one',
    file: OPEN,
    edits: [{ from: `waitedStep === null || from !== 'in_progress'`, to: `from !== 'expired'` }],
    tests: [KEPT],
    only: 'in place of a void one',
  },
  {
    name: 'doubt kept: forget the call when a look throws before it',
    file: 'src/operation/conclude.ts',
    edits: [
      { from: `failure, hold.open, signals`, to: `failure, { waits_for: null, waitsStep: null }, signals` },
    ],
    tests: [KEPT],
    only: 'throws before the call',
  },
  {
    name: 'doubt kept: forget the call when the record is parked',
    file: HOLD,
    edits: [{ from: `call: CallInDoubt = this.#open`, to: `call: CallInDoubt = NO_CALL` }],
    tests: [KEPT],
    only: 'has another step where the durable one was',
  },
  {
    name: 'doubt kept: let a step pass the call in doubt by',
    file: RUN,
    edits: [{ from: `if (!isCall || !isCallOf(`, to: `if (isCall && !isCallOf(` }],
    tests: [KEPT],
    only: 'has an atomic step in place of the call',
  },
  {
    name: 'doubt kept: let another call pass the call in doubt by',
    file: RUN,
    edits: [{ from: `if (!isCall || !isCallOf(name, open, attempt))`, to: `if (!isCall)` }],
    tests: [KEPT],
    only: 'has another call in its place',
  },
  {
    name: 'doubt kept: end an operation whose call is in doubt',
    file: RUN,
    edits: [
      {
        from: `if (open.waitsFor !== null) return passedBy`,
        to: `if (open.waitsFor === '') return passedBy`,
      },
    ],
    tests: [KEPT],
    only: 'ends without the call',
  },
  {
    name: 'doubt kept: keep the call in doubt when it has its result',
    file: SQL,
    edits: [
      {
        from: `progress_key_id = $10, looks = NULL, waits_for = NULL,`,
        to: `progress_key_id = $10, looks = NULL,`,
      },
    ],
    tests: [KEPT],
    only: 'the operation goes on',
  },
  {
    name: 'doubt kept: keep the call in doubt in a record that is completed',
    file: SQL,
    edits: [
      { from: `sent_until = NULL, looks = NULL, waits_for = NULL,`, to: `sent_until = NULL, looks = NULL,` },
    ],
    tests: [KEPT],
    only: 'the operation ends',
  },
  {
    name: 'doubt kept: keep a call in doubt that was proved not to have been executed',
    file: 'src/store/postgres/sql/finish.ts',
    edits: [{ from: `looks = NULL, waits_for = NULL, decided = NULL`, to: `looks = NULL, decided = NULL` }],
    tests: [KEPT],
    only: 'proved that it was not executed',
  },
  {
    name: 'looks: do not count the look that parks an operation',
    file: SQL,
    edits: [{ from: `looks = $11\n`, to: `looks = $11::int - 1\n` }],
    tests: [TOLD],
    only: 'of an operation that is parked',
  },
  {
    name: 'looks: do not count the looks at a handler that is parked',
    file: 'src/store/postgres/sql/recovery.ts',
    edits: [{ from: `$7 IN ('unknown', 'parked') THEN looks`, to: `$7 = 'unknown' THEN looks` }],
    tests: [TOLD],
    only: 'of a handler that is parked',
  },
  {
    name: 'looks: tell that an attempt ended when the next one began',
    file: 'src/store/postgres/sql/columns.ts',
    edits: [{ from: `ELSE previous.changed_at END`, to: `ELSE clock_timestamp() END` }],
    tests: [TOLD],
    only: 'when its record was left',
  },
  {
    name: 'signed evidence: leave it out of the audit',
    file: 'src/store/postgres/evidence.ts',
    edits: [{ from: `signed === null`, to: `signed !== undefined` }],
    tests: [EVIDENCE],
    only: 'stands in the audit of the record',
  },
  {
    name: 'signed evidence: note what was not kept',
    file: 'src/store/postgres/sql/evidence.ts',
    edits: [{ from: `FROM told, (`, to: `FROM (` }],
    tests: [EVIDENCE],
    only: 'where earlier evidence stands',
  },
  {
    name: 'signed evidence: take it for a decision',
    file: 'src/onlyonce/explain.ts',
    edits: [{ from: `action !== 'add_evidence' && `, to: `action !== undefined && ` }],
    tests: [EVIDENCE],
    only: 'hides no decision',
  },
  {
    name: 'signed evidence: fail where two entries of the audit are written at once',
    file: 'src/store/postgres/decisions.ts',
    edits: [{ from: `classify(error) !== 'unique' || tries >=`, to: `tries >= 0 || tries >=` }],
    tests: [EVIDENCE],
    only: 'same moment',
  },
  {
    name: 'truth: take what an operator has allowed for a proof',
    file: 'src/record/owning.ts',
    edits: [{ from: ` || record.decided`, to: `` }],
    tests: [DECIDED],
    only: 'by a handler of the same name',
  },
  {
    name: 'truth: forget when an operation takes the record that an operator has decided',
    file: SQL,
    edits: [{ from: ` OR r.decided OR r.void_calls IS NOT NULL THEN true`, to: ` THEN true` }],
    tests: [DECIDED],
    only: 'the next attempts of the operation',
  },
]
