import { AUDIT_COLUMNS, interval, isInside, presentKind, SUMMARY_COLUMNS } from './columns.ts'

const KIND = presentKind('r')

/** Parameters: 1-3 id. */
export const lookSummary = (schema: string) => `
SELECT ${SUMMARY_COLUMNS.join(', ')} FROM ${schema}.records AS r
WHERE r.account = $1 AND r.operation = $2 AND r.key = $3`

/** Parameters: 1-3 id. */
export const lookForDecision = (schema: string) => `
SELECT retention_ms, waits_for, array_to_json(void_calls)::text AS void_calls FROM ${schema}.records WHERE account = $1 AND operation = $2 AND key = $3`

const WANTED = `
  r.state = ANY ($1::text[]) AND ($2::text IS NULL OR r.account = $2) AND ($3::text IS NULL OR r.operation = $3)
  AND r.attempted_at <= now() - ${interval('$4')}
  AND ($5::bigint IS NULL OR (r.attempted_at, r.account, r.operation, r.key)
    > (timestamptz 'epoch' + $5::bigint * interval '1 microsecond', $6::text, $7::text, $8::text))
ORDER BY r.attempted_at, r.account, r.operation, r.key
LIMIT $9`

/**
 * Records of all accounts that are not finished, the oldest attempt first, by the index `records_unfinished`. Locks nothing.
 * Parameters: 1 states, 2 account or NULL, 3 operation or NULL, 4 age in ms, 5-8 behind which one, or NULL, 9 how many.
 */
export const listUnfinished = (schema: string) => `
SELECT ${SUMMARY_COLUMNS.join(', ')} FROM ${schema}.records AS r
WHERE r.expires_at IS NULL AND ${WANTED}`

/** The same in any state, of one account. */
export const listOfAccount = (schema: string) => `
SELECT ${SUMMARY_COLUMNS.join(', ')} FROM ${schema}.records AS r
WHERE r.account = $2 AND ${WANTED}`

/**
 * Completed records of handlers that threw or replied with 5xx, of all accounts, by the index `records_failed`. One that an operator or
 * `recover` has settled is not among them.
 */
export const listFailed = (schema: string) => `
SELECT ${SUMMARY_COLUMNS.join(', ')} FROM ${schema}.records AS r
WHERE r.reply_status >= 500 AND r.decided IS NOT TRUE AND ${KIND} IN ('h', 'r', 'c') AND ${WANTED}`

/**
 * The records of one key in one account, of every operation. By the primary key: the names of operations that the account has are
 * found one after the other, each by one look into the index, and the key is asked for under each. So it does not matter how many
 * records the account has. Parameters: as above, 10 key, 11 how many names at most.
 */
export const listOfKey = (schema: string) => `
WITH RECURSIVE names (operation, number) AS (
  SELECT min(operation), 1 FROM ${schema}.records WHERE account = $2
  UNION ALL
  SELECT (
    SELECT r.operation FROM ${schema}.records AS r
    WHERE r.account = $2 AND r.operation > names.operation
    ORDER BY r.operation LIMIT 1
  ), names.number + 1
  FROM names WHERE names.operation IS NOT NULL AND names.number < $11::int
)
SELECT ${SUMMARY_COLUMNS.join(', ')}
FROM names JOIN ${schema}.records AS r ON r.account = $2 AND r.operation = names.operation AND r.key = $10
WHERE ${WANTED}`

/** The newest first. Parameters: 1-3 id, 4 how many. */
export const lookAudit = (schema: string) => `
SELECT ${AUDIT_COLUMNS.join(', ')} FROM ${schema}.audit
WHERE account = $1 AND operation = $2 AND key = $3
ORDER BY seq DESC
LIMIT $4`

/**
 * A decision and its entry in the audit, in one statement: neither stands without the other. By the fence, the attempt
 * and the state that were seen, and of a record in progress only after its lease. What is decided is not looked for any
 * more; what is unparked is looked for at once, as if for the first time.
 *
 * Parameters: 1-3 id, 4 fence, 5 attempt id, 6 state seen, 7 new state, 8 retention in ms, 9 status, 10 headers, 11 body,
 * 12 schema, 13 id of the key that sealed it, 14 who, 15 why, 16 action, 17 and 18 error code and message where the record has
 * none, 19 key of the call that is declared void, 20 transaction that it joins, or null. How long the other side remembers the key of the next call is counted from
 * when the record is taken for it, hence no point_at.
 */
export const decide = (schema: string) => `
WITH decided AS (
  UPDATE ${schema}.records AS r
  SET state = $7::text, lease_until = NULL, decided = CASE WHEN $7 <> 'unknown' THEN true END,
      changed_at = clock_timestamp(), expires_at = clock_timestamp() + ${interval('$8')},
      reply_status = $9::smallint, reply_headers = $10, reply_body = $11::bytea, reply_schema = $12::smallint,
      reply_key_id = $13,
      error_code = CASE WHEN $7 <> 'completed' THEN coalesce(error_code, $17) END,
      error_message = CASE WHEN $7 <> 'completed' THEN coalesce(error_message, $18) END,
      sent_until = CASE WHEN r.state = 'in_progress' AND version IS NOT NULL
        THEN greatest(sent_until, lease_until) ELSE sent_until END,
      waits_for = CASE WHEN $7 IN ('unknown', 'parked') THEN waits_for END,
      input = CASE WHEN $7 <> 'completed' THEN input END,
      input_key_id = CASE WHEN $7 <> 'completed' THEN input_key_id END,
      progress = CASE WHEN $7 <> 'completed' THEN progress END,
      progress_key_id = CASE WHEN $7 <> 'completed' THEN progress_key_id END,
      look_at = CASE WHEN $7 = 'unknown' THEN clock_timestamp() END,
      looks = CASE WHEN $7 = 'unknown' THEN 0 ELSE looks END,
      void_calls = CASE WHEN $19::text IS NULL THEN void_calls ELSE array_append(void_calls, $19::text) END,
      point_at = CASE WHEN $19::text IS NULL THEN point_at END
  WHERE r.account = $1 AND r.operation = $2 AND r.key = $3
    AND r.fence = $4::bigint AND r.attempt_id = $5::uuid AND r.state = $6::text
    AND (r.state <> 'in_progress' OR r.lease_until <= clock_timestamp())
    AND ($19::text IS NULL OR r.waits_for = $19::text) AND ${isInside('$20')}
  RETURNING r.fence
), voided AS (
  INSERT INTO ${schema}.void_calls (account, call_key, operation, key, voided_at)
  SELECT $1, $19::text, $2, $3, clock_timestamp() FROM decided WHERE $19::text IS NOT NULL
  ON CONFLICT (account, call_key) DO UPDATE SET voided_at = excluded.voided_at
)
INSERT INTO ${schema}.audit
  (account, operation, key, seq, at, decided_by, why, action, from_state, to_state, fence, call_key)
SELECT $1, $2, $3,
  coalesce((SELECT max(a.seq) FROM ${schema}.audit AS a WHERE a.account = $1 AND a.operation = $2 AND a.key = $3), 0) + 1,
  clock_timestamp(), $14, $15, $16, $6, $7, decided.fence, $19::text
FROM decided
RETURNING seq`
