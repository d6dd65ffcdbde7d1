/** The whole list: one row for each key that is, or not long ago was, in use. */
export const readKeyIds = (schema: string) => `
SELECT purpose, key_id, digest FROM ${schema}.key_ids ORDER BY purpose, key_id`

/**
 * Which of these keys a live record still names. Stops at the first such record; where there is none, it reads
 * the whole table, because an index over key ids would cost every insert for the sake of a rare start.
 * Parameters: 1 purposes, 2 key ids.
 */
export const findNamedKeys = (schema: string) => `
SELECT k.purpose, k.key_id
FROM unnest($1::text[], $2::text[]) AS k (purpose, key_id)
WHERE CASE k.purpose
  WHEN 'fingerprint' THEN EXISTS (
    SELECT FROM ${schema}.records AS r WHERE r.fingerprint_key_id = k.key_id AND r.state <> 'expired')
  ELSE EXISTS (
    SELECT FROM ${schema}.records AS r
    WHERE (r.reply_key_id = k.key_id AND r.state = 'completed') OR r.input_key_id = k.key_id
      OR r.progress_key_id = k.key_id)
    OR EXISTS (SELECT FROM ${schema}.evidence AS e WHERE e.key_id = k.key_id)
    OR EXISTS (SELECT FROM ${schema}.webhook_secrets AS s WHERE s.key_id = k.key_id)
END
ORDER BY k.purpose, k.key_id`

/**
 * In order, so that processes that start together never wait for each other in a ring. A version that knew no digests has listed its
 * keys without. The digest of bytes that no record needs any more is replaced here too, because a role without the right to DELETE could
 * not remove its row; one that another process has listed meanwhile stays.
 * Parameters: 1 purposes, 2 key ids, 3 digests, 4 the digests that were read and may be replaced; '' stands for none.
 */
export const insertKeyIds = (schema: string) => `
INSERT INTO ${schema}.key_ids AS l (purpose, key_id, digest)
SELECT k.purpose, k.key_id, nullif(k.digest, '')
FROM unnest($1::text[], $2::text[], $3::text[]) AS k (purpose, key_id, digest)
ORDER BY k.purpose, k.key_id
ON CONFLICT (purpose, key_id) DO UPDATE SET digest = excluded.digest
WHERE l.digest IS NULL OR (l.purpose, l.key_id, l.digest) IN (SELECT * FROM unnest($1::text[], $2::text[], $4::text[]))`

/** One at a time, for the same reason. Parameters: 1 purpose, 2 key id. */
export const deleteKeyId = (schema: string) => `
DELETE FROM ${schema}.key_ids WHERE purpose = $1 AND key_id = $2`
