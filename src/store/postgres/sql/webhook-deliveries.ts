/** How webhooks get out. Over all accounts, so nothing is locked to be looked at. */
import { FIRST_ID, interval, SECRET_COLUMN, TAKEN_COLUMNS } from './columns.ts'

/** Whether the endpoint `e` wants a message `m`. */
const WANTED = `(e.types IS NULL OR EXISTS (
    SELECT FROM unnest(e.types) AS t (name)
    WHERE t.name = m.type OR (right(t.name, 2) = '.*' AND starts_with(m.type, left(t.name, -1)))))`

/** In order, so that two relays with the same events never wait for each other in a ring.
 * Parameters, arrays: 1 accounts, 2 ids, 3 types, 4 bodies, 5 times in ms. */
export const insertMessages = (schema: string) => `
INSERT INTO ${schema}.webhook_messages (account, id, type, body, created_at)
SELECT g.account, g.id, g.type, g.body, to_timestamp(g.created_at / 1000)
FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::float8[]) AS g (account, id, type, body, created_at)
ORDER BY g.account, g.id
ON CONFLICT (account, id) DO NOTHING`

/** Parameters, arrays: 1 accounts, 2 ids, 3 types. */
export const insertDeliveries = (schema: string) => `
INSERT INTO ${schema}.webhook_deliveries (account, endpoint, message, due_at)
SELECT m.account, e.id, m.id, clock_timestamp()
FROM unnest($1::text[], $2::uuid[], $3::text[]) AS m (account, id, type)
JOIN ${schema}.webhook_endpoints AS e ON e.account = m.account AND e.state = 'enabled' AND ${WANTED}
ORDER BY m.account, e.id, m.id
ON CONFLICT (account, endpoint, message) DO NOTHING`

/**
 * Looks at every endpoint by itself, a few entries of an index each, so that a long queue of one is in no other's way. Disabled ones too:
 * what waits for them has to end. Rows are then found by their whole keys, and in no other way: joined plainly, messages were read by
 * account alone, and a delivery through the queue of its endpoint. Measured with 5,000 endpoints: 2 us for each of them.
 *
 * Accounts take turns, and who has many under way comes after who has few: by age alone, an account whose endpoints all hang would keep
 * all others waiting until each of its deliveries had been tried. It costs nothing where little is due; with something due for all of
 * those 5,000, 37 ms instead of 22. Rows are locked in the order of their keys, as everybody does who has more than one: in that of their
 * turns, which is another one for each deliverer, they would wait for each other in a ring.
 *
 * Parameters: 1 deliveries at most, 2 lease in ms, 3 deliveries of one endpoint at most;
 * arrays, of which the caller has some already: 4 accounts, 5 endpoints, 6 how many.
 */
export const takeDeliveries = (schema: string) => `
WITH busy AS MATERIALIZED (
  SELECT * FROM unnest($4::text[], $5::uuid[], $6::int[]) AS b (account, id, count)
),
next AS MATERIALIZED (
  SELECT d.account, d.endpoint, d.message, d.fence
  FROM ${schema}.webhook_endpoints AS e
  LEFT JOIN busy AS b ON b.account = e.account AND b.id = e.id
  CROSS JOIN LATERAL (
    SELECT account, endpoint, message, fence, due_at FROM ${schema}.webhook_deliveries
    WHERE account = e.account AND endpoint = e.id AND due_at <= now()
      AND (lease_until IS NULL OR lease_until <= clock_timestamp())
    ORDER BY due_at LIMIT greatest(0, $3::int - coalesce(b.count, 0))
  ) AS d
  ORDER BY row_number() OVER (PARTITION BY d.account ORDER BY coalesce(b.count, 0), d.due_at)
    + (SELECT coalesce(sum(o.count), 0) FROM busy AS o WHERE o.account = d.account), d.due_at
  LIMIT $1::int
),
due AS MATERIALIZED (SELECT * FROM next ORDER BY account, endpoint, message),
d AS (
  UPDATE ${schema}.webhook_deliveries AS d
  SET fence = d.fence + 1, attempts = d.attempts + 1, lease_until = clock_timestamp() + ${interval('$2')}
  FROM due
  WHERE d.account = due.account AND d.endpoint = due.endpoint AND d.message = due.message AND d.fence = due.fence
    AND coalesce(d.due_at <= now(), false) AND (d.lease_until IS NULL OR d.lease_until <= clock_timestamp())
  RETURNING d.account, d.endpoint, d.message, d.fence, d.attempts
)
SELECT ${TAKEN_COLUMNS.join(', ')}, (
  SELECT json_agg(json_build_array(${SECRET_COLUMN}, s.key_id) ORDER BY s.created_at DESC, s.id)
  FROM ${schema}.webhook_secrets AS s
  WHERE s.account = d.account AND s.endpoint = d.endpoint AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp()))
FROM d
CROSS JOIN LATERAL (
  SELECT type, body FROM ${schema}.webhook_messages WHERE account = d.account AND id = d.message LIMIT 1
) AS m
CROSS JOIN LATERAL (
  SELECT url, state FROM ${schema}.webhook_endpoints WHERE account = d.account AND id = d.endpoint LIMIT 1
) AS e`

/** It was asked for anew while this attempt was under way: that began the count again, and an attempt that failed does not end it. */
const ASKED_ANEW = `$5 <> 'delivered' AND attempts < $11::int`

/** Parameters: 1-4 account, endpoint, message and fence; 5 state, 6 wait in ms, 7 status, 8 code, 9 message, 10 duration in ms, 11 the
 * attempts when it was taken. */
export const endDelivery = (schema: string) => `
WITH ended AS (
  UPDATE ${schema}.webhook_deliveries
  SET state = CASE WHEN ${ASKED_ANEW} THEN 'pending' ELSE $5 END,
    due_at = CASE WHEN ${ASKED_ANEW} THEN due_at ELSE clock_timestamp() + ${interval('$6')} END, lease_until = NULL,
    ended_at = CASE WHEN $5 <> 'pending' AND NOT (${ASKED_ANEW}) THEN clock_timestamp() END,
    status = $7::int, error_code = $8, error_message = $9
  WHERE account = $1 AND endpoint = $2::uuid AND message = $3::uuid AND fence = $4::bigint AND due_at IS NOT NULL
  RETURNING account, endpoint, message, fence, status, error_code, error_message
)
INSERT INTO ${schema}.webhook_attempts (account, endpoint, message, fence, status, error_code, error_message, duration_ms)
SELECT account, endpoint, message, fence, status, error_code, error_message, $10::int FROM ended
ON CONFLICT (account, endpoint, message, fence) DO NOTHING
RETURNING 1`

/** Not where its owner has changed it meanwhile: that it is enabled again is the newer word. Parameters: 1-2 account and endpoint, 3 the
 * address that said so, 4 when the delivery was taken, in whole ms. */
export const disableGone = (schema: string) => `
UPDATE ${schema}.webhook_endpoints SET state = 'disabled', disabled_why = 'gone', changed_at = clock_timestamp()
WHERE account = $1 AND id = $2::uuid AND url = $3 AND state = 'enabled'
  AND changed_at < to_timestamp(($4::float8 + 1) / 1000)
RETURNING 1`

/** One that is under way keeps its fence and its lease: it is the delivery that was asked for. Parameters: 1-3 account, endpoint, message. */
export const replayMessage = (schema: string) => `
INSERT INTO ${schema}.webhook_deliveries AS d (account, endpoint, message, due_at)
SELECT m.account, $2::uuid, m.id, clock_timestamp() FROM ${schema}.webhook_messages AS m
WHERE m.account = $1 AND m.id = $3::uuid
ON CONFLICT (account, endpoint, message)
DO UPDATE SET state = 'pending', attempts = 0, due_at = clock_timestamp(), ended_at = NULL
RETURNING 1`

/** Parameters: 1 account, 2 endpoint, 3 from, 4 to, 5-6 behind this time and id, 7 messages at most; times in ms. */
export const replayRange = (schema: string) => `
WITH looked AS MATERIALIZED (
  SELECT m.account, m.id, m.created_at, ${WANTED} AS wanted
  FROM ${schema}.webhook_messages AS m
  JOIN ${schema}.webhook_endpoints AS e ON e.account = m.account AND e.id = $2::uuid
  WHERE m.account = $1 AND m.created_at >= to_timestamp($3::float8 / 1000) AND m.created_at < to_timestamp($4::float8 / 1000)
    AND (m.created_at, m.id) > (coalesce(to_timestamp($5::float8 / 1000), '-infinity'), coalesce($6::uuid, ${FIRST_ID}))
  ORDER BY m.created_at, m.id LIMIT $7::int
),
replayed AS (
  INSERT INTO ${schema}.webhook_deliveries AS d (account, endpoint, message, due_at)
  SELECT account, $2::uuid, id, clock_timestamp() FROM looked WHERE wanted ORDER BY id
  ON CONFLICT (account, endpoint, message)
  DO UPDATE SET state = 'pending', attempts = 0, due_at = clock_timestamp(), ended_at = NULL
)
SELECT (extract(epoch FROM created_at) * 1000)::bigint, id, wanted FROM looked ORDER BY created_at, id`

/** What still waits to be delivered stays. Parameters: 1 retention in ms, 2 messages at most. */
export const deleteMessages = (schema: string) => `
WITH old AS MATERIALIZED (
  SELECT account, id FROM ${schema}.webhook_messages AS m
  WHERE created_at <= now() - ${interval('$1')} AND NOT EXISTS (
    SELECT FROM ${schema}.webhook_deliveries AS d
    WHERE d.account = m.account AND d.message = m.id AND d.due_at IS NOT NULL)
  ORDER BY created_at LIMIT $2::int
),
gone AS (
  DELETE FROM ${schema}.webhook_messages AS m USING old WHERE m.account = old.account AND m.id = old.id RETURNING 1
)
SELECT count(*) FROM gone`

/** Endpoints that were removed, once nothing is left that was sent to them. Parameters: the same. */
export const deleteEndpoints = (schema: string) => `
WITH old AS MATERIALIZED (
  SELECT account, id FROM ${schema}.webhook_endpoints AS e
  WHERE state = 'removed' AND changed_at <= now() - ${interval('$1')} AND NOT EXISTS (
    SELECT FROM ${schema}.webhook_deliveries AS d WHERE d.account = e.account AND d.endpoint = e.id)
  ORDER BY changed_at LIMIT $2::int
),
gone AS (
  DELETE FROM ${schema}.webhook_endpoints AS e USING old WHERE e.account = old.account AND e.id = old.id RETURNING 1
)
SELECT count(*) FROM gone`

/** Secrets that sign nothing any more: one that leaks later, or a key of encryption that is still needed for them, would be kept for nothing.
 * Parameters: 1 secrets at most. */
export const deleteSecrets = (schema: string) => `
WITH old AS MATERIALIZED (
  SELECT account, endpoint, id FROM ${schema}.webhook_secrets WHERE expires_at <= now() LIMIT $1::int
),
gone AS (
  DELETE FROM ${schema}.webhook_secrets AS s USING old
  WHERE s.account = old.account AND s.endpoint = old.endpoint AND s.id = old.id RETURNING 1
)
SELECT count(*) FROM gone`
