import { CREATED_AT, ENDED_AT, interval, isInside } from './columns.ts'

/**
 * The insert decides who owns a new key. Zero rows mean that a row is there, or was a moment ago: look again.
 * Parameters: 1-3 id, 4 attempt id, 5 owner, 6 fingerprint, 7 its key id, 8 trace,
 * 9 lease in ms, 10 kind, 11 retention in ms for who ends it in the owner's place.
 */
export const insertInProgress = (schema: string) => `
INSERT INTO ${schema}.records
  (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, trace,
   created_at, attempted_at, changed_at, lease_until, kind, retention_ms)
VALUES ($1, $2, $3, 'in_progress', 1, $4, $5, $6, $7, $8,
   clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() + ${interval('$9')}, $10::"char", $11)
ON CONFLICT (account, operation, key) DO NOTHING
RETURNING ${CREATED_AT}`

/**
 * The same in a transaction of the caller's, with a bound of ours on its wait for a lock. The insert reads the row in which the bound is set, and the answer
 * reads the row of the insert and puts the caller's own bound back: so each comes after the other, in one statement where there were three. Says when
 * the record was made, or `seen` where a row is there, or `ended` where it is not in that transaction.
 * Parameters: the same, 12 transaction, 13 bound in ms.
 */
export const insertInProgressWithin = (schema: string) => `
WITH bound AS MATERIALIZED (
  SELECT current_setting('lock_timeout') AS before, set_config('lock_timeout', $13, true) AS now
), claimed AS (
  INSERT INTO ${schema}.records
    (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, trace,
     created_at, attempted_at, changed_at, lease_until, kind, retention_ms)
  SELECT $1::text, $2::text, $3::text, 'in_progress', 1, $4::uuid, $5::text, $6::bytea, $7::text, $8::text,
     clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() + ${interval('$9')}, $10::"char", $11::bigint
  FROM bound WHERE bound.now IS NOT NULL AND ${isInside('$12')}
  ON CONFLICT (account, operation, key) DO NOTHING
  RETURNING ${CREATED_AT} AS created_at
)
SELECT CASE WHEN NOT ${isInside('$12')} THEN 'ended' ELSE coalesce(claimed.created_at::text, 'seen') END AS said,
  set_config('lock_timeout', bound.before, true) AS restored
FROM bound LEFT JOIN claimed ON true`

/**
 * The record of a transaction, inserted finished. Deliberately without ON CONFLICT: a conflict has to abort
 * the transaction, so that the COMMIT sent together with it does nothing.
 * Parameters: 1-3 id, 4 attempt id, 5 owner, 6 fingerprint, 7 its key id, 8 trace,
 * 9 retention in ms, 10 status, 11 headers, 12 body, 13 schema, 14 id of the key that sealed it, 15 kind.
 */
export const insertCompleted = (schema: string) => `
INSERT INTO ${schema}.records
  (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, trace,
   created_at, attempted_at, changed_at, expires_at, reply_status, reply_headers, reply_body, reply_schema,
   reply_key_id, kind)
VALUES ($1, $2, $3, 'completed', 1, $4, $5, $6, $7, $8,
   now(), now(), clock_timestamp(), clock_timestamp() + ${interval('$9')}, $10, $11, $12, $13, $14, $15::"char")`

/**
 * What is left after a rollback. DO NOTHING: a row that is there belongs to another attempt.
 * Parameters: 1-3 id, 4 attempt id, 5 owner, 6 fingerprint, 7 its key id, 8 trace,
 * 9 retention in ms, 10 error code, 11 error message, 12 kind.
 */
export const insertRetryable = (schema: string) => `
INSERT INTO ${schema}.records
  (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, trace,
   created_at, attempted_at, changed_at, expires_at, error_code, error_message, kind)
VALUES ($1, $2, $3, 'retryable', 1, $4, $5, $6, $7, $8,
   clock_timestamp(), clock_timestamp(), clock_timestamp(), clock_timestamp() + ${interval('$9')}, $10, $11, $12::"char")
ON CONFLICT (account, operation, key) DO NOTHING
RETURNING fence`

/**
 * Takes a record that is there already: raises the fence, gives it to a new attempt in the state that this
 * attempt has by now, and moves the attempt before it into the history. The WHERE holds the fence and the
 * state that were seen, and, for one in progress, that its lease has run out by this clock.
 *
 * Parameters: 1-3 id, 4 fence seen, 5 state seen, 6 new state, 7 attempt id, 8 owner, 9 fingerprint,
 * 10 its key id, 11 trace, 12 lease in ms, 13 retention in ms, 14 status, 15 headers, 16 body, 17 schema,
 * 18 id of the key that sealed the reply, 19 error code, 20 error message, 21 kind, 22 retention in ms for who ends it,
 * 23 transaction of the caller's, or null.
 */
export const supersede = (schema: string) => `
WITH previous AS (
  SELECT * FROM ${schema}.records
  WHERE account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND state = $5
    AND (state <> 'in_progress' OR lease_until <= clock_timestamp()) AND ${isInside('$23')}
  FOR UPDATE
), taken AS (
  UPDATE ${schema}.records AS r
  SET state = $6, fence = r.fence + 1, attempt_id = $7::uuid, owner = $8,
      fingerprint = $9::bytea, fingerprint_key_id = $10, trace = $11,
      attempted_at = clock_timestamp(), changed_at = clock_timestamp(),
      lease_until = clock_timestamp() + ${interval('$12')},
      expires_at = clock_timestamp() + ${interval('$13')},
      reply_status = $14::smallint, reply_headers = $15, reply_body = $16::bytea, reply_schema = $17::smallint,
      reply_key_id = $18, error_code = $19, error_message = $20, kind = $21::"char", retention_ms = $22::bigint,
      look_at = NULL, looks = NULL, decided = NULL, taken_by = $7::uuid,
      void_calls = CASE WHEN r.state = 'expired' THEN NULL ELSE r.void_calls END,
      points = CASE WHEN r.state = 'expired' THEN NULL ELSE r.points END,
      recovery_point = CASE WHEN r.state = 'expired' THEN NULL ELSE r.recovery_point END,
      effects_possible = CASE WHEN r.state = 'expired' THEN NULL ELSE r.effects_possible END
  FROM previous
  WHERE r.account = $1 AND r.operation = $2 AND r.key = $3 AND r.fence = previous.fence
  RETURNING r.fence
), kept AS (
  INSERT INTO ${schema}.attempts
    (account, operation, key, fence, attempt_id, owner, started_at, ended_at, outcome, error_code, error_message)
  SELECT account, operation, key, previous.fence, attempt_id, owner, attempted_at, ${ENDED_AT},
    CASE state WHEN 'in_progress' THEN 'abandoned' ELSE state END, error_code, error_message
  FROM previous, taken
)
SELECT fence FROM taken`
