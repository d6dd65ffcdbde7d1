import { lifeOf } from './columns.ts'

/**
 * A result that an operator discards, and its entry in the audit, in one statement. By the fence, the attempt, the state and the steps that were
 * seen, and of a record in progress only after its lease. Not where a call that follows is in doubt: it may have been made upon that result.
 *
 * The call was sent before its result became durable, and its key was used first after the step before it, whose time is not kept: the beginning of
 * the record is no later. So how long the other side remembers the key is not counted anew.
 *
 * Parameters: 1-3 id, 4 fence, 5 attempt id, 6 state seen, 7 points seen, 8 points, 9 recovery point, 10 progress, 11 its key id, 12 key of the call,
 * 13 its step, 14 and 15 error code and message, 16 who, 17 why, 18 what is discarded, 19 its key id.
 */
export const discardResult = (schema: string) => `
WITH decided AS (
  UPDATE ${schema}.records AS r
  SET state = 'parked', lease_until = NULL, decided = true, effects_possible = true, changed_at = clock_timestamp(),
      points = $8::smallint, recovery_point = nullif($9::text, ''), progress = $10::bytea, progress_key_id = $11,
      waits_for = $12, waits_step = $13, waits_since = clock_timestamp(), look_at = NULL, looks = 0,
      error_code = $14, error_message = $15,
      sent_until = greatest(r.sent_until, r.point_at, CASE WHEN r.state = 'in_progress' THEN r.lease_until END),
      point_at = ${lifeOf(schema, 'r')}
  WHERE r.account = $1 AND r.operation = $2 AND r.key = $3
    AND r.fence = $4::bigint AND r.attempt_id = $5::uuid AND r.state = $6::text AND r.points = $7::smallint
    AND r.state IN ('in_progress', 'unknown', 'parked')
    AND (r.state <> 'in_progress' OR r.lease_until <= clock_timestamp())
    AND r.waits_for IS NULL AND (r.waits_step IS NULL OR r.waits_step = $13)
  RETURNING r.fence
), refused AS (
  UPDATE ${schema}.evidence AS e SET received_at = '-infinity'
  FROM decided
  WHERE e.account = $1 AND e.call_key = $12 AND e.received_at > '-infinity'
)
INSERT INTO ${schema}.audit
  (account, operation, key, seq, at, decided_by, why, action, from_state, to_state, fence, call_key, discarded, discarded_key_id)
SELECT $1, $2, $3,
  coalesce((SELECT max(a.seq) FROM ${schema}.audit AS a WHERE a.account = $1 AND a.operation = $2 AND a.key = $3), 0) + 1,
  clock_timestamp(), $16, $17, 'discard_result', $6, 'parked', decided.fence, $12, $18::bytea, $19
FROM decided
RETURNING seq`

/** The newest first. Parameters: 1-3 id, 4 how many. */
export const lookDiscarded = (schema: string) => `
SELECT seq, call_key, encode(discarded, 'hex'), discarded_key_id FROM ${schema}.audit
WHERE account = $1 AND operation = $2 AND key = $3 AND discarded IS NOT NULL
ORDER BY seq DESC
LIMIT $4`
