/** Erasing what an account has stored, and leaving a tombstone under each of its keys. */

/**
 * What may be erased: what is finished. What is in progress, unknown or parked has to be settled first: its outcome is not known, and
 * nothing but the record could tell it later. An operation that stopped behind durable steps may still be resumed until its retention
 * ends. Of expired records nothing but the key is left, and the tombstone keeps it from running.
 */
const ERASABLE = `(r.state IN ('completed', 'expired')
    OR r.state = 'retryable' AND (coalesce(r.points, 0) = 0 OR r.expires_at <= clock_timestamp()))`

/** 5 is the form of a tombstone: see ERASED_SCHEMA. */
const ERASED = `(r.state = 'completed' AND r.reply_schema = 5)`

/**
 * The next records of an account by their key. Parameters: 1 account, 2 operation or NULL, 3 key or NULL, 4-5 behind which one, 6 how many.
 */
export const pageToErase = (schema: string) => `
SELECT r.operation, r.key, r.state, r.fence::text AS fence, r.attempt_id::text AS attempt_id,
  CASE WHEN ${ERASED} THEN 'erased' WHEN ${ERASABLE} THEN 'erasable' ELSE 'left' END AS verdict
FROM ${schema}.records AS r
WHERE r.account = $1 AND ($2::text IS NULL OR r.operation = $2) AND ($3::text IS NULL OR r.key = $3)
  AND (r.operation, r.key) > ($4, $5)
ORDER BY r.operation, r.key LIMIT $6`

/**
 * Tombstones, each with its entry in the audit and without its history, in one statement: neither is there without the other. By what was
 * seen, asked again in the moment of writing: a retry may have taken a retryable record meanwhile. The attempt's id stays: it is the proof
 * that a COMMIT whose answer was lost took effect. The fingerprint goes, and with it the need for the key that made it.
 * Parameters: 1 account, 2 who, 3 why; arrays: 4 operations, 5 keys, 6 states, 7 fences, 8 attempt ids.
 */
export const eraseRecords = (schema: string) => `
WITH erased AS (
  UPDATE ${schema}.records AS r
  SET state = 'completed', decided = true, changed_at = clock_timestamp(), expires_at = timestamptz '9999-12-31 00:00:00Z',
      fingerprint = ''::bytea, fingerprint_key_id = '', trace = NULL, owner = 'erased',
      reply_status = 410, reply_headers = '[]', reply_body = NULL, reply_schema = 5, reply_key_id = NULL,
      error_code = NULL, error_message = NULL,
      version = NULL, input = NULL, input_key_id = NULL, progress = NULL, progress_key_id = NULL,
      points = NULL, recovery_point = NULL,
      point_at = NULL, deadline_at = NULL, sent_until = NULL, retention_ms = NULL, void_calls = NULL, effects_possible = NULL,
      waits_for = NULL, waits_step = NULL, waits_since = NULL, look_at = NULL, looks = NULL
  FROM unnest($4::text[], $5::text[], $6::text[], $7::bigint[], $8::uuid[]) AS k (operation, key, state, fence, attempt_id)
  WHERE r.account = $1 AND r.operation = k.operation AND r.key = k.key
    AND r.fence = k.fence AND r.attempt_id = k.attempt_id AND r.state = k.state AND ${ERASABLE} AND NOT ${ERASED}
  RETURNING r.operation, r.key, k.state AS from_state, r.fence
), history AS (
  DELETE FROM ${schema}.attempts AS a USING erased
  WHERE a.account = $1 AND a.operation = erased.operation AND a.key = erased.key
)
INSERT INTO ${schema}.audit
  (account, operation, key, seq, at, decided_by, why, action, from_state, to_state, fence)
SELECT $1, e.operation, e.key,
  coalesce((SELECT max(a.seq) FROM ${schema}.audit AS a WHERE a.account = $1 AND a.operation = e.operation AND a.key = e.key), 0) + 1,
  clock_timestamp(), $2, $3, 'erase', e.from_state, 'completed', e.fence
FROM erased AS e
RETURNING 1`

/** How many records there are to go through. Parameters: 1 account, 2 operation or NULL, 3 key or NULL. */
export const countToErase = (schema: string) => `
SELECT count(*) FILTER (WHERE ${ERASED})::float8 AS erased,
  count(*) FILTER (WHERE ${ERASABLE} AND NOT ${ERASED})::float8 AS erasable,
  count(*) FILTER (WHERE r.state = 'in_progress')::float8 AS in_progress,
  count(*) FILTER (WHERE r.state = 'unknown')::float8 AS unknown,
  count(*) FILTER (WHERE r.state = 'parked')::float8 AS parked,
  count(*) FILTER (WHERE r.state = 'retryable' AND NOT ${ERASABLE})::float8 AS retryable
FROM ${schema}.records AS r
WHERE r.account = $1 AND ($2::text IS NULL OR r.operation = $2) AND ($3::text IS NULL OR r.key = $3)`

/**
 * Evidence, when no record of the account is unfinished: it often comes before the record that needs it is in doubt, and nothing tells yet
 * whose it is. Parameters: 1 account, 2 how many.
 */
export const eraseEvidence = (schema: string) => `
DELETE FROM ${schema}.evidence AS e
WHERE e.account = $1 AND e.call_key IN (
  SELECT o.call_key FROM ${schema}.evidence AS o
  WHERE o.account = $1
    AND NOT EXISTS (SELECT FROM ${schema}.records AS r WHERE r.account = $1 AND r.expires_at IS NULL)
  LIMIT $2)
RETURNING 1`

/** Messages of webhooks that are on their way to no endpoint. Their deliveries and attempts go with them. Parameters: the same. */
export const eraseWebhookMessages = (schema: string) => `
DELETE FROM ${schema}.webhook_messages AS m
WHERE m.account = $1 AND m.id IN (
  SELECT o.id FROM ${schema}.webhook_messages AS o
  WHERE o.account = $1 AND NOT EXISTS (
    SELECT FROM ${schema}.webhook_deliveries AS d
    WHERE d.account = $1 AND d.message = o.id AND d.due_at IS NOT NULL)
  LIMIT $2)
RETURNING 1`

/** Endpoints that wait for nothing, with their secrets. Parameters: the same. */
export const eraseWebhookEndpoints = (schema: string) => `
DELETE FROM ${schema}.webhook_endpoints AS w
WHERE w.account = $1 AND w.id IN (
  SELECT o.id FROM ${schema}.webhook_endpoints AS o
  WHERE o.account = $1 AND NOT EXISTS (
    SELECT FROM ${schema}.webhook_deliveries AS d WHERE d.account = $1 AND d.endpoint = o.id AND d.due_at IS NOT NULL)
  LIMIT $2)
RETURNING 1`

/** Jobs that are done, or are not tried any more. Parameters: the same. */
export const eraseJobs = (schema: string) => `
DELETE FROM ${schema}.jobs AS j
WHERE j.account = $1 AND j.id IN (
  SELECT o.id FROM ${schema}.jobs AS o WHERE o.account = $1 AND o.run_at IS NULL LIMIT $2)
RETURNING 1`

/** What is left of an account beside its records. Parameters: 1 account. */
export const countLeftovers = (schema: string) => `
SELECT (SELECT count(*)::float8 FROM ${schema}.evidence WHERE account = $1) AS evidence,
  (SELECT count(*)::float8 FROM ${schema}.webhook_messages WHERE account = $1) AS webhook_messages,
  (SELECT count(*)::float8 FROM ${schema}.webhook_endpoints WHERE account = $1) AS webhook_endpoints,
  (SELECT count(*)::float8 FROM ${schema}.jobs WHERE account = $1) AS jobs,
  (SELECT count(*)::float8 FROM ${schema}.events WHERE account = $1) AS events`
