/**
 * Which keys what is stored was made with, and what is sealed anew. Pages go along the primary keys, so that each reads a bounded number of
 * rows however few of them are concerned; and what is sealed anew takes the place of the very bytes that were opened, or of nothing.
 */

/** How many rows name each key; one statement for all tables. Tombstones need no key: theirs is empty. No parameters. */
export const countKeyUse = (schema: string) => `
SELECT 'fingerprint' AS purpose, 'records' AS what, r.fingerprint_key_id AS key_id, count(*)::float8 AS count,
  count(*) FILTER (WHERE r.expires_at IS NULL)::float8 AS unfinished,
  (extract(epoch FROM max(r.expires_at)) * 1000)::float8 AS kept_until_ms
FROM ${schema}.records AS r WHERE r.state <> 'expired' AND r.fingerprint_key_id <> '' GROUP BY r.fingerprint_key_id
UNION ALL
SELECT 'reply', 'replies', r.reply_key_id, count(*)::float8, 0, (extract(epoch FROM max(r.expires_at)) * 1000)::float8
FROM ${schema}.records AS r WHERE r.state = 'completed' AND r.fingerprint_key_id <> '' GROUP BY r.reply_key_id
UNION ALL
SELECT 'reply', 'inputs', r.input_key_id, count(*)::float8,
  count(*) FILTER (WHERE r.expires_at IS NULL)::float8, (extract(epoch FROM max(r.expires_at)) * 1000)::float8
FROM ${schema}.records AS r WHERE r.input IS NOT NULL GROUP BY r.input_key_id
UNION ALL
SELECT 'reply', 'steps', r.progress_key_id, count(*)::float8,
  count(*) FILTER (WHERE r.expires_at IS NULL)::float8, (extract(epoch FROM max(r.expires_at)) * 1000)::float8
FROM ${schema}.records AS r WHERE r.progress IS NOT NULL GROUP BY r.progress_key_id
UNION ALL
SELECT 'reply', 'evidence', e.key_id, count(*)::float8, 0, NULL FROM ${schema}.evidence AS e GROUP BY e.key_id
UNION ALL
SELECT 'reply', 'webhook secrets', s.key_id, count(*)::float8, 0, NULL FROM ${schema}.webhook_secrets AS s GROUP BY s.key_id`

/**
 * The next records by their key, with the bytes of what is to be sealed anew. What an owner works on is left to the owner.
 * Parameters: 1-3 behind which one, 4 how many, 5 the key that is current, 6 whether what is plain is sealed too.
 */
export const pageOfRecords = (schema: string) => `
SELECT p.account, p.operation, p.key, p.state, p.fence::text AS fence, p.attempt_id::text AS attempt_id,
  p.reply_status, p.reply_headers, p.reply_schema, p.reply_key_id, p.input_key_id, p.progress_key_id,
  p.state = 'in_progress' AND p.lease_until > clock_timestamp() AS owned,
  CASE WHEN p.state = 'completed' AND p.reply_key_id IS DISTINCT FROM $5 AND (p.reply_key_id IS NOT NULL OR $6::boolean)
    THEN coalesce(p.reply_body, ''::bytea) END AS reply_body,
  p.reply_body IS NULL AS reply_not_kept,
  CASE WHEN p.input_key_id IS DISTINCT FROM $5 AND (p.input_key_id IS NOT NULL OR $6::boolean) THEN p.input END AS input,
  CASE WHEN p.progress_key_id IS DISTINCT FROM $5 AND (p.progress_key_id IS NOT NULL OR $6::boolean) THEN p.progress END AS progress
FROM (
  SELECT * FROM ${schema}.records AS r WHERE (r.account, r.operation, r.key) > ($1, $2, $3)
  ORDER BY r.account, r.operation, r.key LIMIT $4
) AS p
ORDER BY p.account, p.operation, p.key`

/** Parameters: 1 new key; arrays: 2-4 id, 5 fence, 6 attempt id, 7 digest of the bytes that were opened, 8 new bytes. */
export const resealReplies = (schema: string) => `
UPDATE ${schema}.records AS r SET reply_headers = '[]', reply_body = k.bytes, reply_key_id = $1
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::uuid[], $7::bytea[], $8::bytea[])
  AS k (account, operation, key, fence, attempt_id, was, bytes)
WHERE r.account = k.account AND r.operation = k.operation AND r.key = k.key
  AND r.fence = k.fence AND r.attempt_id = k.attempt_id AND r.state = 'completed'
  AND sha256(coalesce(r.reply_body, ''::bytea)) = k.was AND r.reply_key_id IS DISTINCT FROM $1
RETURNING 1`

/** Of an unfinished or retryable operation whose owner is gone. Parameters: the same. */
export const resealInputs = (schema: string) => `
UPDATE ${schema}.records AS r SET input = k.bytes, input_key_id = $1
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::uuid[], $7::bytea[], $8::bytea[])
  AS k (account, operation, key, fence, attempt_id, was, bytes)
WHERE r.account = k.account AND r.operation = k.operation AND r.key = k.key
  AND r.fence = k.fence AND r.attempt_id = k.attempt_id AND sha256(r.input) = k.was
  AND (r.state <> 'in_progress' OR r.lease_until <= clock_timestamp())
RETURNING 1`

/** Parameters: the same. */
export const resealSteps = (schema: string) => `
UPDATE ${schema}.records AS r SET progress = k.bytes, progress_key_id = $1
FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::uuid[], $7::bytea[], $8::bytea[])
  AS k (account, operation, key, fence, attempt_id, was, bytes)
WHERE r.account = k.account AND r.operation = k.operation AND r.key = k.key
  AND r.fence = k.fence AND r.attempt_id = k.attempt_id AND sha256(r.progress) = k.was
  AND (r.state <> 'in_progress' OR r.lease_until <= clock_timestamp())
RETURNING 1`

/** Parameters: 1-2 behind which one, 3 how many, 4 the key that is current, 5 whether what is plain is sealed too. */
export const pageOfEvidence = (schema: string) => `
SELECT p.account, p.call_key, p.key_id,
  CASE WHEN p.key_id IS DISTINCT FROM $4 AND (p.key_id IS NOT NULL OR $5::boolean) THEN p.result END AS bytes
FROM (
  SELECT * FROM ${schema}.evidence AS e WHERE (e.account, e.call_key) > ($1, $2)
  ORDER BY e.account, e.call_key LIMIT $3
) AS p
ORDER BY p.account, p.call_key`

/** Later evidence may have taken its place meanwhile. Parameters: 1 new key; arrays: 2 accounts, 3 keys of calls, 4 digests, 5 new bytes. */
export const resealEvidence = (schema: string) => `
UPDATE ${schema}.evidence AS e SET result = k.bytes, key_id = $1
FROM unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[]) AS k (account, call_key, was, bytes)
WHERE e.account = k.account AND e.call_key = k.call_key AND sha256(e.result) = k.was
RETURNING 1`

/** Parameters: 1-3 behind which one, 4 how many, 5 the key that is current, 6 whether what is plain is sealed too. */
export const pageOfWebhookSecrets = (schema: string) => `
SELECT p.account, p.endpoint::text AS endpoint, p.id::text AS id, p.key_id,
  CASE WHEN p.key_id IS DISTINCT FROM $5 AND (p.key_id IS NOT NULL OR $6::boolean) THEN p.secret END AS bytes
FROM (
  SELECT * FROM ${schema}.webhook_secrets AS s WHERE (s.account, s.endpoint, s.id) > ($1, $2::uuid, $3::uuid)
  ORDER BY s.account, s.endpoint, s.id LIMIT $4
) AS p
ORDER BY p.account, p.endpoint, p.id`

/** Parameters: 1 new key; arrays: 2 accounts, 3 endpoints, 4 ids, 5 digests, 6 new bytes. */
export const resealWebhookSecrets = (schema: string) => `
UPDATE ${schema}.webhook_secrets AS s SET secret = k.bytes, key_id = $1
FROM unnest($2::text[], $3::uuid[], $4::uuid[], $5::bytea[], $6::bytea[]) AS k (account, endpoint, id, was, bytes)
WHERE s.account = k.account AND s.endpoint = k.endpoint AND s.id = k.id AND sha256(s.secret) = k.was
RETURNING 1`
