import { interval } from './columns.ts'

/**
 * What may go: finished, past its retention, and not changed a moment ago. Never by the absence of a lease or the like:
 * unfinished records are never removed. The condition on the state is also that of the index `records_reapable`.
 */
const FINISHED = `r.state IN ('completed', 'retryable')`

/**
 * Over all accounts, and locks nothing: what is found here is asked again when it is taken. now() and not
 * clock_timestamp(), which could not bound a scan of the index. Parameters: 1 how long they are kept at least in ms, 2 how many.
 */
export const findReapable = (schema: string) => `
SELECT r.account, r.operation, r.key, r.fence, r.attempt_id
FROM ${schema}.records AS r
WHERE ${FINISHED} AND r.expires_at <= now() AND r.changed_at <= now() - ${interval('$1')}
ORDER BY r.expires_at
LIMIT $2`

/**
 * Everything is asked again in the moment of taking: a retry may have taken the record meanwhile, or still be about to
 * commit, and then its new version is judged. A fence alone does not tell a record from one that followed a deleted one.
 */
const STILL = `
  r.account = k.account AND r.operation = k.operation AND r.key = k.key
  AND r.fence = k.fence AND r.attempt_id = k.attempt_id
  AND ${FINISHED} AND r.expires_at <= clock_timestamp() AND r.changed_at <= clock_timestamp() - ${interval('$1')}`

/** Parameters: 1 how long they are kept at least in ms; arrays: 2-4 id, 5 fence, 6 attempt id. */
export const deleteReapable = (schema: string) => `
DELETE FROM ${schema}.records AS r
USING unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::uuid[])
  AS k (account, operation, key, fence, attempt_id)
WHERE ${STILL}
RETURNING 1`

/** Nothing of the request or its result is left but that there was one. Parameters: the same. */
export const expireReapable = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'expired', changed_at = clock_timestamp(),
    reply_status = NULL, reply_headers = NULL, reply_body = NULL, reply_schema = NULL, reply_key_id = NULL,
    error_code = NULL, error_message = NULL,
    version = NULL, input = NULL, input_key_id = NULL, progress = NULL, progress_key_id = NULL,
    points = NULL, recovery_point = NULL,
    point_at = NULL, deadline_at = NULL, sent_until = NULL, retention_ms = NULL,
    waits_for = NULL, waits_step = NULL, waits_since = NULL, look_at = NULL, looks = NULL
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::uuid[])
  AS k (account, operation, key, fence, attempt_id)
WHERE ${STILL}
RETURNING 1`

/** Evidence that no record will ask for any more. Parameters: 1 how long it is kept in ms, 2 how many. */
export const findOldEvidence = (schema: string) => `
SELECT account, call_key FROM ${schema}.evidence
WHERE received_at <= now() - ${interval('$1')}
ORDER BY received_at
LIMIT $2`

/** Not what a record still waits for. Arrays: 1 accounts, 2 keys of calls. */
export const deleteEvidence = (schema: string) => `
DELETE FROM ${schema}.evidence AS e
USING unnest($1::text[], $2::text[]) AS k (account, call_key)
WHERE e.account = k.account AND e.call_key = k.call_key
  AND NOT EXISTS (SELECT FROM ${schema}.records AS r WHERE r.account = e.account AND r.waits_for = e.call_key)
RETURNING 1`
