import { ENDED_AT, interval, lifeOf, presentKind, RESUMED_COLUMNS } from './columns.ts'
import { OWNED } from './finish.ts'

const KIND = presentKind('r')
const PREVIOUS_KIND = presentKind('p')

/**
 * The record of an operation with the result of its first step, or with none. Without ON CONFLICT: a conflict has to
 * abort the transaction of that step.
 * Parameters: 1-3 id, 4 attempt id, 5 owner, 6 fingerprint, 7 its key id, 8 trace, 9 lease in ms, 10 version, 11 input,
 * 12 its key id, 13 deadline in ms, 14 retention in ms, 15 points, 16 recovery point, 17 progress, 18 its key id.
 */
export const insertBegun = (schema: string) => `
INSERT INTO ${schema}.records
  (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, trace,
   created_at, attempted_at, changed_at, lease_until, version, input, input_key_id, deadline_at, retention_ms,
   points, recovery_point, progress, progress_key_id, point_at, kind)
VALUES ($1, $2, $3, 'in_progress', 1, $4, $5, $6, $7, $8,
   now(), now(), clock_timestamp(), clock_timestamp() + ${interval('$9')}, $10, $11, $12,
   clock_timestamp() + ${interval('$13')}, $14, $15, $16, $17, $18, clock_timestamp(), 'o')
RETURNING ctid`

/**
 * The first statement of every later step. It raises where the fence is old, so that all that was sent with it, and
 * COMMIT with all, does nothing. Parameters: 1-5 id, fence and attempt id.
 */
export const lockOwned = (schema: string) => `
SELECT CASE
  WHEN (SELECT count(*) FROM (
    SELECT FROM ${schema}.records
    WHERE account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND attempt_id = $5::uuid
      AND state = 'in_progress'
    FOR UPDATE
  ) AS mine) = 1 THEN true
  ELSE ${schema}.refuse_owner('OO001')
END`

/**
 * The same by the place where the record was put when it was last written. A serializable transaction that finds a row
 * by an index has read a page of that index, and collides with every transaction that writes to the page: with every new record
 * near it. Measured with 64 callers on a table that was empty at first: 5.8 transactions for each operation in
 * place of 2.
 * Parameters: 1-5 id, fence and attempt id, 6 place.
 */
export const lockOwnedAt = (schema: string) => `
SELECT CASE
  WHEN (SELECT count(*) FROM (
    SELECT FROM ${schema}.records
    WHERE ctid = $6::tid AND account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint
      AND attempt_id = $5::uuid AND state = 'in_progress'
    FOR UPDATE
  ) AS mine) = 1 THEN true
  ELSE ${schema}.refuse_owner('OO004')
END`

/** No step follows a call in doubt: what becomes durable proves what became of the call. */
const POINTS = `
SET lease_until = clock_timestamp() + ${interval('$6')}, changed_at = clock_timestamp(), point_at = clock_timestamp(),
    points = $7::smallint, recovery_point = $8, progress = $9, progress_key_id = $10, looks = NULL, waits_for = NULL, waits_step = NULL`

/**
 * Steps are only ever added: a write whose connection was given up may reach the server when later ones are done.
 * Parameters: 1-5 id, fence and attempt id, 6 lease in ms, 7 points, 8 recovery point, 9 progress, 10 its key id.
 */
export const writePoints = (schema: string) => `
UPDATE ${schema}.records ${POINTS} WHERE ${OWNED} AND coalesce(points, 0) < $7::smallint RETURNING ctid`

/** The same for a record that is locked by its place. Parameters: as above, 11 place. */
export const writePointsAt = (schema: string) => `
UPDATE ${schema}.records ${POINTS} WHERE ctid = $11::tid AND ${OWNED} RETURNING ctid`

/** Input and results are not needed any more, and what is not kept cannot leak. */
const END = `
SET state = 'completed', lease_until = NULL, changed_at = clock_timestamp(), point_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$6')}, points = $7, recovery_point = $8,
    reply_status = $9, reply_headers = $10, reply_body = $11, reply_schema = $12, reply_key_id = $13,
    input = NULL, input_key_id = NULL, progress = NULL, progress_key_id = NULL,
    deadline_at = NULL, sent_until = NULL, looks = NULL, waits_for = NULL, waits_step = NULL`

/**
 * The end. Parameters: 1-5 id, fence and attempt id, 6 retention in ms, 7 points, 8 recovery point, 9 status,
 * 10 headers, 11 body, 12 schema, 13 id of the key that sealed it.
 */
export const finishOperation = (schema: string) => `
UPDATE ${schema}.records ${END} WHERE ${OWNED} RETURNING ctid`

/** The same for a record that is locked by its place. Parameters: as above, 14 place. */
export const finishOperationAt = (schema: string) => `
UPDATE ${schema}.records ${END} WHERE ctid = $14::tid AND ${OWNED} RETURNING ctid`

/** Parameters: 1-5 id, fence and attempt id, 6 retention in ms. */
export const keepFor = (schema: string) => `
UPDATE ${schema}.records SET retention_ms = greatest(retention_ms, $6::bigint) WHERE ${OWNED} RETURNING fence`

/**
 * Waits for a step that is still open: it holds the row. Parameters: 1-3 id.
 */
export const lockToSettle = (schema: string) => `
SELECT state, attempt_id, points, decided FROM ${schema}.records
WHERE account = $1 AND operation = $2 AND key = $3
FOR UPDATE`

/**
 * Takes an operation over by the fence and the state that were seen, and gives all that is durable of it. What an
 * earlier attempt has written stays; only a record without a head gets the one of the new attempt. An expired one
 * starts over, with nothing of what was. A worker gives no head (version is NULL) and leaves the deadline as it is.
 * Parameters: 1-3 id, 4 fence seen, 5 state seen, 6 attempt id, 7 owner, 8 trace, 9 fingerprint, 10 its key id,
 * 11 lease in ms, 12 version, 13 input, 14 its key id, 15 deadline in ms, 16 retention in ms, 17 versions that the taker
 * has the code of, 18 keys that it can open with. A taker that cannot go on with it must not raise its fence. What vanished, or is in
 * doubt, was begun as an operation, or is none to go on with: the same as `mayFollow` in the code. The call in doubt stays known: the new owner may
 * vanish, or stop, before it comes to that call. One that is void does not, because this owner may send the call in its place.
 */
export const takeOver = (schema: string) => `
WITH previous AS (
  SELECT * FROM ${schema}.records AS p
  WHERE account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = $5
    AND (state <> 'in_progress' OR lease_until <= clock_timestamp())
    AND (state IN ('retryable', 'expired') OR ${PREVIOUS_KIND} = 'o')
    AND (state = 'expired' OR (
      (version IS NULL OR version = ANY ($17::text[]))
      AND (input_key_id IS NULL OR input_key_id = ANY ($18::text[]))
      AND (progress_key_id IS NULL OR progress_key_id = ANY ($18::text[]))))
  FOR UPDATE
), taken AS (
  UPDATE ${schema}.records AS r
  SET state = 'in_progress', fence = r.fence + 1, attempt_id = $6::uuid, owner = $7, trace = $8,
      fingerprint = CASE WHEN r.state = 'expired' THEN coalesce($9::bytea, r.fingerprint) ELSE r.fingerprint END,
      fingerprint_key_id = CASE WHEN r.state = 'expired' THEN coalesce($10, r.fingerprint_key_id) ELSE r.fingerprint_key_id END,
      attempted_at = clock_timestamp(), changed_at = clock_timestamp(),
      lease_until = clock_timestamp() + ${interval('$11')}, expires_at = NULL,
      reply_status = NULL, reply_headers = NULL, reply_body = NULL, reply_schema = NULL, reply_key_id = NULL,
      error_code = NULL, error_message = NULL, look_at = NULL, kind = 'o', decided = NULL,
      taken_by = $6::uuid,
      void_calls = CASE WHEN r.state = 'expired' THEN NULL ELSE r.void_calls END,
      effects_possible = CASE WHEN r.state = 'expired' THEN NULL
        WHEN ${KIND} = 'r' OR r.decided OR r.void_calls IS NOT NULL THEN true ELSE r.effects_possible END,
      version = CASE WHEN r.state = 'expired' THEN $12 ELSE coalesce(r.version, $12) END,
      input = CASE WHEN r.state = 'expired' OR r.input IS NULL THEN $13::bytea ELSE r.input END,
      input_key_id = CASE WHEN r.state = 'expired' OR r.input IS NULL THEN $14 ELSE r.input_key_id END,
      progress = CASE WHEN r.state = 'expired' THEN NULL ELSE r.progress END,
      progress_key_id = CASE WHEN r.state = 'expired' THEN NULL ELSE r.progress_key_id END,
      points = CASE WHEN r.state = 'expired' THEN NULL ELSE r.points END,
      recovery_point = CASE WHEN r.state = 'expired' THEN NULL ELSE r.recovery_point END,
      looks = CASE WHEN r.state IN ('expired', 'retryable') THEN NULL ELSE r.looks END,
      waits_step = CASE WHEN r.state IN ('expired', 'retryable') THEN NULL ELSE r.waits_step END,
      waits_for = CASE WHEN r.state IN ('expired', 'retryable') OR r.waits_for = ANY (r.void_calls) THEN NULL ELSE r.waits_for END,
      deadline_at = CASE WHEN $12::text IS NULL THEN r.deadline_at ELSE clock_timestamp() + ${interval('$15')} END,
      retention_ms = CASE WHEN r.state = 'expired' THEN coalesce($16::bigint, r.retention_ms) ELSE greatest($16::bigint, r.retention_ms) END,
      point_at = CASE WHEN r.state = 'expired' THEN clock_timestamp() ELSE coalesce(r.point_at, clock_timestamp()) END,
      sent_until = CASE r.state
        WHEN 'in_progress' THEN greatest(r.sent_until, r.lease_until)
        WHEN 'unknown' THEN coalesce(r.sent_until, r.changed_at)
        WHEN 'expired' THEN NULL
        ELSE r.sent_until END
  FROM previous
  WHERE r.account = $1 AND r.operation = $2 AND r.key = $3 AND r.fence = previous.fence
  RETURNING r.*, r.ctid AS place, previous.waits_for AS waited_for, CASE previous.state
    WHEN 'in_progress' THEN 1 + (
      SELECT count(*) FROM ${schema}.attempts AS a
      WHERE a.account = $1 AND a.operation = $2 AND a.key = $3 AND a.fence > coalesce((
        SELECT max(e.fence) FROM ${schema}.attempts AS e
        WHERE e.account = $1 AND e.operation = $2 AND e.key = $3 AND e.outcome <> 'abandoned'), 0))
    ELSE 0 END AS vanished
), kept AS (
  INSERT INTO ${schema}.attempts
    (account, operation, key, fence, attempt_id, owner, started_at, ended_at, outcome, error_code, error_message)
  SELECT previous.account, previous.operation, previous.key, previous.fence, previous.attempt_id, previous.owner,
    previous.attempted_at, ${ENDED_AT},
    CASE previous.state WHEN 'in_progress' THEN 'abandoned' ELSE previous.state END,
    previous.error_code, previous.error_message
  FROM previous, taken
)
SELECT ${RESUMED_COLUMNS} FROM taken AS r`

/** A doubt about the same step is as old as the first one: looks that found nothing do not renew it. */
const WAITS_STEP = `waits_step = $9::text,
    waits_since = CASE WHEN $9::text IS NULL THEN NULL WHEN waits_step = $9::text THEN waits_since ELSE clock_timestamp() END`

/**
 * The last moment at which a call may have been sent. An attempt that began after the deadline has sent nothing: if its
 * looking counted as such a moment, frequent looks would never come to an end. Also of an attempt that parks the record: a
 * call of it may be lost before another one is refused.
 */
const SENT_UNTIL = `sent_until = CASE WHEN deadline_at < attempted_at THEN coalesce(sent_until, clock_timestamp()) ELSE clock_timestamp() END`

/**
 * Evidence that is there already is looked at now; about a call that is void, what came since the attempt began, because what came before
 * was read by it, and may be about another step.
 * Parameters: 1-5 id, fence and attempt id, 6 error code, 7 error message, 8 key of the call, 9 its step, 10 looks,
 * 11 next look in ms, 12 retention in ms.
 */
export const doubtOperation = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $6, error_message = $7,
    ${SENT_UNTIL}, waits_for = $8, ${WAITS_STEP}, looks = $10, retention_ms = greatest(retention_ms, $12::bigint),
    look_at = CASE
      WHEN $11::float8 IS NOT NULL AND EXISTS (
        SELECT FROM ${schema}.evidence WHERE account = $1 AND (
          (call_key = $8::text AND received_at >= ${lifeOf(schema, 'r')})
          OR (call_key = ANY (void_calls) AND received_at >= attempted_at)))
      THEN clock_timestamp()
      ELSE clock_timestamp() + ${interval('$11')} END
WHERE ${OWNED}
RETURNING fence`

/** Parameters: 1-5 id, fence and attempt id, 6 error code, 7 error message, 8 key of the call, 9 its step, 10 retention in ms, 11 looks. */
export const parkOperation = (schema: string) => `
UPDATE ${schema}.records
SET state = 'parked', lease_until = NULL, changed_at = clock_timestamp(), error_code = $6, error_message = $7,
    ${SENT_UNTIL}, waits_for = $8, ${WAITS_STEP}, retention_ms = greatest(retention_ms, $10::bigint), looks = $11
WHERE ${OWNED}
RETURNING fence`

/**
 * Locks nothing: each is taken by its fence afterwards. Only what the asker has the code for.
 * Parameters: 1 operations, 2 their versions, 3 grace in ms, 4 limit.
 */
export const findAbandoned = (schema: string) => `
SELECT account, operation, key, fence, state
FROM ${schema}.records AS r
WHERE expires_at IS NULL AND state = 'in_progress' AND lease_until <= now() - ${interval('$3')}
  AND (operation, version) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND ${KIND} = 'o'
ORDER BY attempted_at
LIMIT $4`

/** Parameters: 1 operations, 2 their versions, 3 limit. */
export const findDue = (schema: string) => `
SELECT account, operation, key, fence, state
FROM ${schema}.records AS r
WHERE look_at <= now() AND state = 'unknown'
  AND (operation, version) IN (SELECT * FROM unnest($1::text[], $2::text[])) AND ${KIND} = 'o'
ORDER BY look_at
LIMIT $3`

/**
 * Of the operations in doubt, and of those whose owner vanished, the one that has waited longest for a worker: the one that a worker takes
 * first. Parameters: 1 overdue by ms, 2 operations that are not asked for.
 */
export const findLongestWaiting = (schema: string) => `
(SELECT account, operation, key, fence, state
 FROM ${schema}.records AS r
 WHERE look_at <= now() - ${interval('$1')} AND state = 'unknown' AND operation <> ALL ($2::text[]) AND ${KIND} = 'o'
 ORDER BY look_at
 LIMIT 1)
UNION ALL
(SELECT account, operation, key, fence, state
 FROM ${schema}.records AS r
 WHERE expires_at IS NULL AND attempted_at <= now() - ${interval('$1')}
   AND state = 'in_progress' AND lease_until <= now() - ${interval('$1')} AND operation <> ALL ($2::text[]) AND ${KIND} = 'o'
 ORDER BY attempted_at
 LIMIT 1)`

/** Parameters: 1-3 id. */
export const lookProgress = (schema: string) => `
SELECT encode(progress, 'hex'), progress_key_id FROM ${schema}.records
WHERE account = $1 AND operation = $2 AND key = $3 AND progress IS NOT NULL`

/** Why a record was not taken, where its fence is not the reason. Parameters: 1-3 id, 4 fence seen, 5 state seen. */
export const lookNeeds = (schema: string) => `
SELECT version, input_key_id, progress_key_id FROM ${schema}.records
WHERE account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = $5`
