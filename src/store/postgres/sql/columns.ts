/**
 * Times leave the database as whole milliseconds since the epoch, so that no process's clock or time zone
 * has a say; everything else leaves as text.
 */
const milliseconds = (expression: string) => `(extract(epoch FROM ${expression}) * 1000)::bigint`

/** The same for where thousands are read at once: extract() computes in decimals, this in floating point. */
const fastMilliseconds = (expression: string) => `floor(date_part('epoch', ${expression}) * 1000)::bigint`

/** Not bytea's own text form: that depends on a setting of the session. */
const hex = (column: string) => `encode(${column}, 'hex')`

/**
 * What protects the work of the present attempt. A version before the column writes no kind, and leaves the one of an earlier
 * attempt where it takes a record over: its own may be one that must not run again.
 */
export const presentKind = (r: string) => `CASE
  WHEN ${r}.kind IS NOT NULL AND (${r}.fence = 1 OR ${r}.taken_by = ${r}.attempt_id) THEN ${r}.kind::text
  WHEN ${r}.version IS NULL THEN 'h' ELSE 'o' END`

/** The columns of one record, in the order that `readRecord` expects. */
const RECORD_COLUMNS = [
  'r.state',
  'r.fence',
  'r.attempt_id',
  'r.owner',
  hex('r.fingerprint'),
  'r.fingerprint_key_id',
  milliseconds('r.created_at'),
  milliseconds('r.attempted_at'),
  milliseconds('r.changed_at'),
  milliseconds('r.lease_until'),
  milliseconds('r.expires_at'),
  'r.reply_status',
  'r.reply_headers',
  hex('r.reply_body'),
  'r.reply_schema',
  'r.error_code',
  'r.error_message',
  milliseconds('clock_timestamp()'),
  'r.reply_key_id',
  'r.trace',
  milliseconds('r.look_at'),
  presentKind('r'),
  'r.looks',
  // As text, so that it is the same however a client reads truth values.
  "CASE WHEN r.decided THEN 't' END",
  'r.points',
]

export const RECORD_COLUMN_COUNT = RECORD_COLUMNS.length

/** The same under the names c0, c1, … */
export const recordColumns = RECORD_COLUMNS.map((column, i) => `${column} AS c${i}`).join(', ')

/** The same as one text, which no type parser of the caller's client and no binary format changes. */
export const RECORD_AS_TEXT = `array_to_json(ARRAY[${RECORD_COLUMNS.map((column) => `(${column})::text`).join(', ')}])::text AS columns`

/** The columns of one superseded attempt, in the order that `readAttempt` expects. */
export const ATTEMPT_COLUMNS = [
  'fence',
  'attempt_id',
  'owner',
  milliseconds('started_at'),
  milliseconds('ended_at'),
  'outcome',
  'error_code',
  'error_message',
]

/** What an operator sees of a record, in the order that `readSummary` expects. The last tells places in a list apart. */
export const SUMMARY_COLUMNS = [
  'r.account',
  'r.operation',
  'r.key',
  'r.state',
  'r.fence',
  'r.owner',
  milliseconds('r.created_at'),
  milliseconds('r.attempted_at'),
  milliseconds('r.changed_at'),
  milliseconds('r.lease_until'),
  milliseconds('r.expires_at'),
  'r.error_code',
  'r.error_message',
  'r.version',
  'r.recovery_point',
  milliseconds('r.deadline_at'),
  milliseconds('r.look_at'),
  'r.looks',
  'r.waits_for',
  'r.retention_ms',
  'array_to_json(r.void_calls)',
  'r.reply_status',
  'r.reply_schema',
  presentKind('r'),
  'r.waits_step',
  milliseconds('r.waits_since'),
  milliseconds(`CASE WHEN r.version IS NOT NULL THEN CASE r.state
    WHEN 'in_progress' THEN greatest(r.sent_until, r.lease_until)
    WHEN 'retryable' THEN r.sent_until
    WHEN 'unknown' THEN coalesce(r.sent_until, r.changed_at)
    WHEN 'parked' THEN coalesce(r.sent_until, r.changed_at) END END`),
  '(extract(epoch FROM r.attempted_at) * 1000000)::bigint',
]

/** The columns of one decision, in the order that `readAudit` expects. */
export const AUDIT_COLUMNS = [
  'seq',
  milliseconds('at'),
  'decided_by',
  'why',
  'action',
  'from_state',
  'to_state',
  'fence',
  'call_key',
]

/**
 * When the present life of a record began: a key that was removed and comes again begins a new one. Removed with `expire`, its row is
 * still there, and the history says when it was taken again.
 */
export const lifeOf = (schema: string, r: string) => `coalesce((
  SELECT max(a.ended_at) FROM ${schema}.attempts AS a
  WHERE a.account = ${r}.account AND a.operation = ${r}.operation AND a.key = ${r}.key AND a.outcome = 'expired'
), ${r}.created_at)`

/**
 * When the attempt ended that is superseded in `previous`: when its record came into the state that it was found in, or, where it was abandoned, when its
 * lease was over. That of an expired one is when the next life of the key begins: see `lifeOf`.
 */
export const ENDED_AT = `CASE previous.state
  WHEN 'expired' THEN clock_timestamp() WHEN 'in_progress' THEN previous.lease_until ELSE previous.changed_at END`

/** How long ago a time is, in whole milliseconds. */
export const ageOf = (time: string) => milliseconds(`(now() - ${time})`)

/** A duration given in milliseconds as an interval; NULL stays NULL. */
export const interval = (parameter: string) => `(${parameter}::float8 * interval '1 millisecond')`

const age = (time: string) => milliseconds(`(clock_timestamp() - ${time})`)

/** The columns of an operation that was taken over, in the order that `readResumed` expects: its record first. */
export const RESUMED_COLUMNS = [
  ...RECORD_COLUMNS,
  'r.version',
  hex('r.input'),
  'r.input_key_id',
  hex('r.progress'),
  'r.progress_key_id',
  'r.points',
  age('r.point_at'),
  age('r.sent_until'),
  age('r.deadline_at'),
  'r.retention_ms',
  'r.looks',
  'r.place',
  'r.waited_for',
  'array_to_json(r.void_calls)',
  'r.effects_possible',
  'r.vanished',
  'r.waits_step',
].join(', ')

/** How long a lock is still held. */
export const HELD_FOR = milliseconds('(held_until - clock_timestamp())')

/** All that an insert has to tell: what else it wrote, the caller knows. */
export const CREATED_AT = milliseconds('created_at')

/** The columns of an event that is `e`, in the order that `readEvent` expects. */
export const EVENT_COLUMNS = [
  'e.account',
  'e.id',
  'e.aggregate',
  'e.sequence',
  'e.type',
  'e.payload',
  fastMilliseconds('e.emitted_at'),
]

/** The columns of a job that is `j`, in the order that `readJob` expects. */
export const JOB_COLUMNS = [
  'j.account',
  'j.id',
  'j.job',
  'j.key',
  'j.payload',
  'j.attempts',
  fastMilliseconds('j.staged_at'),
]

/** The columns of a webhook's endpoint that is `e`, in the order that `readEndpoint` expects. */
export const ENDPOINT_COLUMNS = [
  'e.id',
  'e.url',
  'array_to_json(e.types)',
  'e.description',
  'e.state',
  'e.disabled_why',
  milliseconds('e.created_at'),
  milliseconds('e.changed_at'),
]

/** The columns of a message that is `m`, in the order that `readMessage` expects. */
export const MESSAGE_COLUMNS = ['m.id', 'm.type', 'm.body', milliseconds('m.created_at')]

/** The columns of a delivery that is `d`, of a message that is `m`, in the order that `readDelivery` expects. */
export const DELIVERY_COLUMNS = [
  'd.endpoint',
  'd.message',
  'm.type',
  'd.state',
  'd.attempts',
  milliseconds('d.due_at'),
  milliseconds('d.created_at'),
  milliseconds('d.ended_at'),
  'd.status',
  'd.error_code',
  'd.error_message',
]

/** The columns of a delivery that was taken, in the order that `readTaken` expects. */
export const TAKEN_COLUMNS = [
  'd.account',
  'd.endpoint',
  'd.message',
  'd.fence',
  'd.attempts',
  'm.type',
  'm.body',
  'e.url',
  'e.state',
  milliseconds('clock_timestamp()'),
]

/** The columns of one attempt of a delivery, in the order that `readDeliveryAttempt` expects. */
export const DELIVERY_ATTEMPT_COLUMNS = [
  'fence',
  milliseconds('ended_at'),
  'duration_ms',
  'status',
  'error_code',
  'error_message',
]

/** Where a list of ids begins and ends: a place in it that is always given can be found by an index. */
export const FIRST_ID = `'00000000-0000-0000-0000-000000000000'::uuid`
export const LAST_ID = `'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid`

/** A secret as it is stored, without bytea's own text form. */
export const SECRET_COLUMN = hex('s.secret')

/**
 * Whether the statement is in the transaction whose id is given. A statement that stands by itself has another id, or none yet; so has one in a
 * later transaction of the connection. Ids have 64 bits and do not come again. NULL: the library's own transaction, which needs no such question.
 */
export const isInside = (parameter: string) =>
  `coalesce(${parameter}::xid8 IS NULL OR pg_current_xact_id_if_assigned() = ${parameter}::xid8, false)`
