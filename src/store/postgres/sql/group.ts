import { CREATED_AT } from './columns.ts'
import { ANSWERABLE, NOT_IN_DOUBT } from './finish.ts'

/**
 * The claims of many callers in one statement and one commit. Each tells by its attempt id whether it went in.
 * Parameters, all arrays: 1-3 id, 4 attempt id, 5 owner, 6 fingerprint, 7 its key id, 8 trace, 9 lease in ms,
 * 10 kind, 11 retention in ms.
 */
export const insertManyInProgress = (schema: string) => `
INSERT INTO ${schema}.records
  (account, operation, key, state, fence, attempt_id, owner, fingerprint, fingerprint_key_id, trace,
   created_at, attempted_at, changed_at, lease_until, kind, retention_ms)
SELECT account, operation, key, 'in_progress', 1, attempt_id, owner, fingerprint, key_id, trace,
  now, now, now, now + lease_ms * interval '1 millisecond', kind, retention_ms
FROM (
  SELECT *, clock_timestamp() AS now
  FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bytea[], $7::text[], $8::text[],
    $9::float8[], $10::"char"[], $11::bigint[])
    AS k (account, operation, key, attempt_id, owner, fingerprint, key_id, trace, lease_ms, kind, retention_ms)
) AS claimed
ON CONFLICT (account, operation, key) DO NOTHING
RETURNING attempt_id, ${CREATED_AT}`

/**
 * The completions of many owners, each by its own fence.
 * Parameters, all arrays: 1-5 id, fence and attempt id, 6 retention in ms, 7 status, 8 headers, 9 body, 10 schema,
 * 11 id of the key that sealed it.
 */
export const completeMany = (schema: string) => `
UPDATE ${schema}.records AS r
SET state = 'completed', lease_until = NULL, changed_at = clock_timestamp(),
    expires_at = clock_timestamp() + k.retention_ms * interval '1 millisecond',
    ${NOT_IN_DOUBT},
    reply_status = k.status, reply_headers = k.headers, reply_body = k.body, reply_schema = k.reply_schema,
    reply_key_id = k.key_id
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::float8[], $7::smallint[], $8::text[],
  $9::bytea[], $10::smallint[], $11::text[])
  AS k (account, operation, key, fence, attempt_id, retention_ms, status, headers, body, reply_schema, key_id)
WHERE r.account = k.account AND r.operation = k.operation AND r.key = k.key AND r.fence = k.fence
  AND r.attempt_id = k.attempt_id AND ${ANSWERABLE}
RETURNING r.attempt_id`

/**
 * For the transaction of a group. No member of it waits for a lock longer than a moment, because all others in it
 * would wait too. And each row is found by its key: a plan that was made while the table was small, and joins by
 * reading all of it, would be used for a long while after. NULL in an array is none, also where a role has the setting that makes a text of it.
 */
export const setGroupBounds = (ms: number) => `
SELECT set_config('lock_timeout', '${ms}', true), set_config('enable_seqscan', 'off', true),
  set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
  set_config('array_nulls', 'on', true)`
