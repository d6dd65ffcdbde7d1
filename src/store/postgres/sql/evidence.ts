import { interval, lifeOf } from './columns.ts'

/** In microseconds, which is all that the database keeps. */
const RECEIVED_US = '(extract(epoch FROM e.received_at) * 1000000)::bigint'

/**
 * The first evidence stays, unless it is of an earlier life of the key, or is so old that it may be: then it settles nothing, and would keep the
 * evidence of this life out. Parameters: 1 account, 2 key of the call, 3 result, 4 its key id, 5 how long the first stays in ms.
 */
export const insertEvidence = (schema: string) => `
INSERT INTO ${schema}.evidence AS e (account, call_key, result, key_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT (account, call_key) DO UPDATE
SET result = excluded.result, key_id = excluded.key_id, received_at = clock_timestamp()
WHERE e.received_at < clock_timestamp() - ${interval('$5')} OR EXISTS (
  SELECT FROM ${schema}.records AS r
  WHERE r.account = e.account AND r.waits_for = e.call_key AND e.received_at < ${lifeOf(schema, 'r')})
RETURNING call_key`

/**
 * The same by a person, and its entry in the audit of the record that waits for the call, or of which the call was declared void. Evidence that is not
 * kept leaves none. Parameters: as above, 6 who, 7 why.
 */
export const insertSignedEvidence = (schema: string) => `
WITH told AS (${insertEvidence(schema)}
), noted AS (
  INSERT INTO ${schema}.audit
    (account, operation, key, seq, at, decided_by, why, action, from_state, to_state, fence, call_key)
  SELECT r.account, r.operation, r.key,
    coalesce((SELECT max(a.seq) FROM ${schema}.audit AS a WHERE a.account = r.account AND a.operation = r.operation AND a.key = r.key), 0) + 1,
    clock_timestamp(), $6, $7, 'add_evidence', r.state, r.state, r.fence, $2
  FROM told, (
    SELECT * FROM ${schema}.records WHERE account = $1 AND waits_for = $2
    UNION ALL
    SELECT v.* FROM ${schema}.void_calls AS c
    JOIN ${schema}.records AS v ON v.account = c.account AND v.operation = c.operation AND v.key = c.key
    WHERE c.account = $1 AND c.call_key = $2 AND c.call_key = ANY (v.void_calls) AND v.waits_for IS DISTINCT FROM $2
  ) AS r
)
SELECT call_key FROM told`

/** Parameters: 1 account, 2 key of the call. */
export const hurry = (schema: string) => `
UPDATE ${schema}.records SET look_at = clock_timestamp()
WHERE account = $1 AND waits_for = $2 AND state = 'unknown' AND look_at IS NOT NULL`

/**
 * The record of which an operator has declared this call void; none where a record of a later life has the key, for which the
 * call is an ordinary one again. Parameters: 1 account, 2 key of the call.
 */
export const findVoidCall = (schema: string) => `
SELECT v.operation, v.key FROM ${schema}.void_calls AS v
WHERE v.account = $1 AND v.call_key = $2 AND NOT EXISTS (
  SELECT FROM ${schema}.records AS r
  WHERE r.account = v.account AND r.operation = v.operation AND r.key = v.key
    AND (v.call_key = ANY (r.void_calls)) IS NOT TRUE)`

/** Parameters: 1-3 id. */
export const hurryRecord = (schema: string) => `
UPDATE ${schema}.records SET look_at = clock_timestamp()
WHERE account = $1 AND operation = $2 AND key = $3 AND state = 'unknown' AND look_at IS NOT NULL`

/**
 * Only what was told in the present life of the record. A call is made after its record was committed, so that what was told before is about a call
 * of an earlier life, whose key is the same. Parameters: 1-3 id, 4 key of the call.
 */
export const findEvidence = (schema: string) => `
SELECT encode(e.result, 'hex'), e.key_id, ${RECEIVED_US} FROM ${schema}.evidence AS e
JOIN ${schema}.records AS r ON r.account = e.account AND r.operation = $2 AND r.key = $3
WHERE e.account = $1 AND e.call_key = $4 AND e.received_at >= ${lifeOf(schema, 'r')}`

/**
 * Evidence that came so early is of no life of any record: it is not read, hurries no look, and keeps no other out. Nothing is deleted, because a
 * role may lack that right. Parameters: 1 account, 2 key of the call, 3 when it came, as `findEvidence` tells it.
 */
export const refuseEvidence = (schema: string) => `
UPDATE ${schema}.evidence AS e SET received_at = '-infinity'
WHERE e.account = $1 AND e.call_key = $2 AND e.received_at > '-infinity' AND ${RECEIVED_US} = $3::bigint`

/** Parameters: 1 account, 2 key of the call. */
export const findWaiting = (schema: string) => `
SELECT state FROM ${schema}.records
WHERE account = $1 AND waits_for = $2 AND state IN ('in_progress', 'unknown', 'parked') LIMIT 1`
