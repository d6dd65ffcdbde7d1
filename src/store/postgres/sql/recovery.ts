import { interval, presentKind } from './columns.ts'

const KIND = presentKind('r')

/**
 * Over all accounts, and locks nothing: each is taken by its fence afterwards. Both parts are ranges of small indexes.
 * Records in progress by `records_unfinished`: a lease that is over by the grace began at least as long ago, so that what
 * just began is not read. Records in doubt by `records_due`; those that version 0.1.0 left in doubt have no time for a look
 * and are found with the first.
 * Parameters: 1 grace in ms, 2 operations that the asker can ask about, 3 orphaned after ms, 4 limit.
 */
export const findUnattended = (schema: string) => `
(SELECT r.account, r.operation, r.key, r.fence, r.attempt_id, r.state, ${KIND}, coalesce(r.looks, 0),
   r.error_code, r.error_message
 FROM ${schema}.records AS r
 WHERE r.expires_at IS NULL AND r.attempted_at <= now() - ${interval('$1')} AND ${KIND} <> 'o'
   AND (r.state = 'in_progress' AND r.lease_until <= now() - ${interval('$1')}
     OR r.state = 'unknown' AND r.look_at IS NULL)
 ORDER BY r.attempted_at
 LIMIT $4)
UNION ALL
(SELECT r.account, r.operation, r.key, r.fence, r.attempt_id, r.state, ${KIND}, coalesce(r.looks, 0),
   r.error_code, r.error_message
 FROM ${schema}.records AS r
 WHERE r.look_at <= now() AND r.state = 'unknown' AND ${KIND} <> 'o'
   AND (${KIND} <> 'c' OR r.operation = ANY ($2::text[]) OR r.look_at <= now() - ${interval('$3')})
 ORDER BY r.look_at
 LIMIT $4)`

const SEEN = `account = $1 AND operation = $2 AND key = $3 AND fence = $4::bigint AND attempt_id = $5::uuid`

/**
 * The fence stays: the owner may still answer. Parameters: 1-5 id, fence and attempt id, 6 grace in ms, 7 retention in ms,
 * 8 error code, 9 error message.
 */
export const vanish = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = CASE WHEN ${KIND} = 'r' THEN 'retryable' ELSE 'unknown' END,
    lease_until = NULL, changed_at = clock_timestamp(), error_code = $8, error_message = $9,
    look_at = CASE WHEN ${KIND} <> 'r' THEN clock_timestamp() END,
    looks = CASE WHEN ${KIND} <> 'r' THEN 0 END,
    expires_at = CASE WHEN ${KIND} = 'r'
      THEN clock_timestamp() + coalesce(retention_ms, $7::bigint) * interval '1 millisecond' END
WHERE ${SEEN} AND state = 'in_progress' AND ${KIND} <> 'o' AND lease_until <= clock_timestamp() - ${interval('$6')}
RETURNING state`

/** Parameters: 1-5 id, fence and attempt id, 6 looks seen, 7 held for ms. */
export const takeLook = (schema: string) => `
UPDATE ${schema}.records AS r
SET looks = coalesce(looks, 0) + 1, look_at = clock_timestamp() + ${interval('$7')}
WHERE ${SEEN} AND state = 'unknown' AND ${KIND} <> 'o' AND coalesce(looks, 0) = $6::int
  AND coalesce(look_at, clock_timestamp()) <= clock_timestamp()
RETURNING looks`

/**
 * Parameters: 1-5 id, fence and attempt id, 6 number of the look, 7 new state, 8 next look in ms, 9 retention in ms,
 * 10 status, 11 headers, 12 body, 13 schema, 14 id of the key that sealed it, 15 error code, 16 error message.
 */
export const endLook = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = $7::text, changed_at = clock_timestamp(),
    look_at = clock_timestamp() + ${interval('$8')},
    looks = CASE WHEN $7 IN ('unknown', 'parked') THEN looks END,
    expires_at = CASE WHEN $7 IN ('completed', 'retryable')
      THEN clock_timestamp() + coalesce(retention_ms, $9::bigint) * interval '1 millisecond' END,
    reply_status = $10::smallint, reply_headers = $11, reply_body = $12::bytea, reply_schema = $13::smallint,
    reply_key_id = $14,
    error_code = CASE WHEN $7 <> 'completed' THEN coalesce($15, error_code) END,
    error_message = CASE WHEN $7 <> 'completed' THEN coalesce($16, error_message) END,
    decided = CASE WHEN $7 IN ('completed', 'retryable') THEN true END
WHERE ${SEEN} AND state = 'unknown' AND ${KIND} <> 'o' AND coalesce(looks, 0) = $6::int
RETURNING state`
