import { interval, isInside, presentKind } from './columns.ts'

const KIND = presentKind('r')

/**
 * Every write of an owner carries its fence, and an old one changes no row; and its attempt id, because fences begin
 * anew when a record was deleted meanwhile.
 */
const SEEN = `account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint`
const MINE = `${SEEN} AND attempt_id = $5::uuid`
export const OWNED = `${MINE} AND state = 'in_progress'`

/**
 * A record that its owner may still answer: in progress, or given up meanwhile without a decision. The same as
 * `mayAnswer` in the code. Operations are taken over by a new fence instead.
 */
export const ANSWERABLE = `(state = 'in_progress'
  OR (state IN ('unknown', 'parked') AND ${KIND} <> 'o' AND decided IS NOT TRUE))`
const ANSWERED = `${MINE} AND ${ANSWERABLE}`

/** What a record in doubt says, and another one does not. */
export const NOT_IN_DOUBT = `error_code = NULL, error_message = NULL, look_at = NULL, looks = NULL, decided = NULL`

const COMPLETED = `state = 'completed', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$6')}, ${NOT_IN_DOUBT},
    reply_status = $7, reply_headers = $8, reply_body = $9, reply_schema = $10, reply_key_id = $11`

/** Parameters: 1-5 id, fence and attempt id, 6 retention in ms, 7 status, 8 headers, 9 body, 10 schema, 11 id of the key that sealed it. */
export const complete = (schema: string) => `
UPDATE ${schema}.records AS r
SET ${COMPLETED}
WHERE ${ANSWERED}
RETURNING fence`

/** The same in a transaction of the caller's. NULL where it is not in that transaction. Parameters: the same, 12 transaction. */
export const completeWithin = (schema: string) => `
WITH done AS (
  UPDATE ${schema}.records AS r
  SET ${COMPLETED}
  WHERE ${ANSWERED} AND ${isInside('$12')}
  RETURNING fence
)
SELECT fence FROM done
UNION ALL SELECT NULL WHERE NOT ${isInside('$12')}`

/** Parameters: 1-5 id, fence and attempt id, 6 retention in ms, 7 error code, 8 error message, 9 the kind to keep, or null. */
export const release = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'retryable', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + ${interval('$6')}, error_code = $7, error_message = $8,
    look_at = NULL, looks = NULL, waits_for = NULL, decided = NULL, kind = coalesce($9::"char", kind)
WHERE ${ANSWERED}
RETURNING fence`

/**
 * Only what the attempt has made itself: what stands under a later fence, an earlier attempt has left. The same as `mayForget` in the
 * code. Parameters: 1-5 id, fence and attempt id.
 */
export const forget = (schema: string) => `
DELETE FROM ${schema}.records
WHERE ${OWNED} AND fence = 1
RETURNING fence`

/** Parameters: 1-5 id, fence and attempt id, 6 error code, 7 error message, 8 first look in ms. */
export const doubt = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $6, error_message = $7,
    look_at = clock_timestamp() + ${interval('$8')}, looks = 0
WHERE ${OWNED}
RETURNING fence`

/**
 * The owner vanished: the fence stays, because no owner takes the record.
 * Parameters: 1-4 id and fence, 5 error code, 6 error message, 7 grace in ms.
 */
export const doubtVanished = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'unknown', lease_until = NULL, changed_at = clock_timestamp(), error_code = $5, error_message = $6,
    look_at = lease_until + ${interval('$7')}, looks = 0
WHERE ${SEEN} AND state = 'in_progress' AND lease_until <= clock_timestamp()
RETURNING fence`

/**
 * Of a record in progress nothing but the lease changes, so that the update stays in place (HOT).
 * Parameters: 1-5 id, fence and attempt id, 6 lease in ms.
 */
export const extend = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'in_progress', lease_until = clock_timestamp() + ${interval('$6')},
    error_code = NULL, error_message = NULL, look_at = NULL, decided = NULL,
    looks = CASE WHEN state = 'in_progress' THEN looks END
WHERE ${ANSWERED} AND (state = 'in_progress' OR $6::float8 > 0)
RETURNING fence`
