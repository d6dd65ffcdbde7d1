/** Endpoints of webhooks, and what their owners see. All within one account. */
import {
  DELIVERY_ATTEMPT_COLUMNS,
  DELIVERY_COLUMNS,
  ENDPOINT_COLUMNS,
  interval,
  LAST_ID,
  MESSAGE_COLUMNS,
} from './columns.ts'

const SHOWN = `e.account = $1 AND e.id = $2::uuid AND e.state <> 'removed'`

/** Endpoints of one account are made one after the other, until the transaction ends: otherwise two that come at once would both find
 * room. Parameters: 1 account. */
export const lockEndpoints = (schema: string) => `
SELECT pg_advisory_xact_lock(hashtextextended('${schema} webhook endpoints ' || $1::text, 0))`

/** In a statement of its own behind the lock, so that it sees what the one before has made.
 * Parameters: 1 account, 2 id, 3 url, 4 types, 5 description, 6 secret id, 7 secret, 8 key id, 9 endpoints at most. */
export const insertEndpoint = (schema: string) => `
WITH e AS (
  INSERT INTO ${schema}.webhook_endpoints (account, id, url, types, description)
  SELECT $1::text, $2::uuid, $3::text, $4::text[], $5::text
  WHERE (SELECT count(*) FROM ${schema}.webhook_endpoints WHERE account = $1 AND state <> 'removed') < $9::int
  ON CONFLICT DO NOTHING
  RETURNING *
),
s AS (
  INSERT INTO ${schema}.webhook_secrets (account, endpoint, id, secret, key_id)
  SELECT account, id, $6::uuid, $7::bytea, $8::text FROM e
)
SELECT ${ENDPOINT_COLUMNS.join(', ')} FROM e`

/** Parameters: 1 account, 2 url. */
export const findUrl = (schema: string) => `
SELECT 1 FROM ${schema}.webhook_endpoints AS e
WHERE e.account = $1 AND md5(e.url) = md5($2::text) AND e.url = $2::text AND e.state <> 'removed'`

export const listEndpoints = (schema: string) => `
SELECT ${ENDPOINT_COLUMNS.join(', ')} FROM ${schema}.webhook_endpoints AS e
WHERE e.account = $1 AND e.state <> 'removed' ORDER BY e.created_at, e.id`

export const getEndpoint = (schema: string) => `
SELECT ${ENDPOINT_COLUMNS.join(', ')} FROM ${schema}.webhook_endpoints AS e WHERE ${SHOWN}`

/** Parameters: 1-2 account and id; then whether it changes, and to what: 3-4 url, 5-6 types, 7-8 description, 9-10 state. */
export const changeEndpoint = (schema: string) => `
UPDATE ${schema}.webhook_endpoints AS e SET
  url = CASE WHEN $3::boolean THEN $4::text ELSE e.url END,
  types = CASE WHEN $5::boolean THEN $6::text[] ELSE e.types END,
  description = CASE WHEN $7::boolean THEN $8::text ELSE e.description END,
  state = CASE WHEN $9::boolean THEN $10::text ELSE e.state END,
  disabled_why = CASE WHEN NOT $9::boolean THEN e.disabled_why WHEN $10::text = 'disabled' THEN 'asked' END,
  changed_at = clock_timestamp()
WHERE ${SHOWN}
RETURNING ${ENDPOINT_COLUMNS.join(', ')}`

/** What waits for it ends when it is due; its secrets are gone at once. */
export const removeEndpoint = (schema: string) => `
WITH removed AS (
  UPDATE ${schema}.webhook_endpoints AS e SET state = 'removed', disabled_why = NULL, changed_at = clock_timestamp()
  WHERE ${SHOWN}
  RETURNING e.account, e.id
),
gone AS (
  DELETE FROM ${schema}.webhook_secrets AS s USING removed AS r
  WHERE s.account = r.account AND s.endpoint = r.id
)
SELECT 1 FROM removed`

/** A rotation waits for another one that is under way. Parameters: 1-2 account and id. */
export const lockEndpoint = (schema: string) => `
SELECT 1 FROM ${schema}.webhook_endpoints AS e WHERE e.account = $1 AND e.id = $2::uuid AND e.state <> 'removed' FOR UPDATE`

/** Parameters: 1-2 account and id, 3 how long the others go on in ms, 4 the secrets that may go on at most. */
export const retireSecrets = (schema: string) => `
WITH others AS (
  SELECT id, row_number() OVER (ORDER BY created_at DESC, id) > $4::int OR coalesce(expires_at <= clock_timestamp(), false)
    OR $3::float8 <= 0 AS over
  FROM ${schema}.webhook_secrets WHERE account = $1 AND endpoint = $2::uuid
),
gone AS (
  DELETE FROM ${schema}.webhook_secrets AS s USING others AS o
  WHERE s.account = $1 AND s.endpoint = $2::uuid AND s.id = o.id AND o.over
)
UPDATE ${schema}.webhook_secrets AS s
SET expires_at = least(s.expires_at, clock_timestamp() + ${interval('$3')})
FROM others AS o
WHERE s.account = $1 AND s.endpoint = $2::uuid AND s.id = o.id AND NOT o.over`

/** Parameters: 1-2 account and id of the endpoint, 3 id, 4 secret, 5 key id. */
export const insertSecret = (schema: string) => `
INSERT INTO ${schema}.webhook_secrets (account, endpoint, id, secret, key_id)
SELECT e.account, e.id, $3::uuid, $4::bytea, $5::text FROM ${schema}.webhook_endpoints AS e WHERE ${SHOWN}
RETURNING 1`

/** How long a list may take, and that it goes by the index that has its order: a plan that does not know the values takes the time from the
 * beginning of the account for as good, and sorts. Goes before the list, in the same flush. Parameters: 1 milliseconds. */
export const boundRead = () => `
SELECT set_config('statement_timeout', $1::text, true), set_config('enable_incremental_sort', 'off', true),
  set_config('enable_seqscan', 'off', true)`

/** Of some types: for each of them its newest, by its index. Whole rows are compared and ordered, because only that index has them. One statement for both questions would read all messages of the
 * account for a type that is rare. Parameters: as of listMessages. */
export const listMessagesOf = (schema: string) => `
SELECT ${MESSAGE_COLUMNS.join(', ')} FROM unnest($2::text[]) AS wanted (type) CROSS JOIN LATERAL (
  SELECT * FROM ${schema}.webhook_messages AS one
  WHERE (one.account, one.type, one.created_at) >= ($1, wanted.type, coalesce(to_timestamp($3::float8 / 1000), '-infinity'))
    AND (one.account, one.type, one.created_at) < ($1, wanted.type, coalesce(to_timestamp($4::float8 / 1000), 'infinity'))
    AND (one.account, one.type, one.created_at, one.id)
      < ($1, wanted.type, coalesce(to_timestamp($5::float8 / 1000), 'infinity'), coalesce($6::uuid, ${LAST_ID}))
  ORDER BY one.account DESC, one.type DESC, one.created_at DESC, one.id DESC LIMIT $7::int
) AS m ORDER BY m.created_at DESC, m.id DESC LIMIT $7::int`

/** Parameters: 1 account, 2 types, which are not looked at, 3 from, 4 to, 5-6 behind this time and id, 7 messages at most; times in ms. */
export const listMessages = (schema: string) => `
SELECT ${MESSAGE_COLUMNS.join(', ')} FROM ${schema}.webhook_messages AS m
WHERE m.account = $1 AND $2::text[] IS NULL
  AND m.created_at >= coalesce(to_timestamp($3::float8 / 1000), '-infinity')
  AND m.created_at < coalesce(to_timestamp($4::float8 / 1000), 'infinity')
  AND (m.created_at, m.id) < (coalesce(to_timestamp($5::float8 / 1000), 'infinity'), coalesce($6::uuid, ${LAST_ID}))
ORDER BY m.created_at DESC, m.id DESC LIMIT $7::int`

export const getMessage = (schema: string) => `
SELECT ${MESSAGE_COLUMNS.join(', ')} FROM ${schema}.webhook_messages AS m WHERE m.account = $1 AND m.id = $2::uuid`

/** The newest messages first: their ids begin with a time. One statement for each question: a plan for all of them would read the
 * whole account for one endpoint. Parameters: 1 account, 2-3 behind this message and endpoint, 4 deliveries at most. */
export const listDeliveries = (schema: string) => `
SELECT ${DELIVERY_COLUMNS.join(', ')}
FROM ${schema}.webhook_deliveries AS d
JOIN ${schema}.webhook_messages AS m ON m.account = d.account AND m.id = d.message
WHERE d.account = $1 AND (d.message, d.endpoint) < (coalesce($2::uuid, ${LAST_ID}), coalesce($3::uuid, ${LAST_ID}))
ORDER BY d.message DESC, d.endpoint DESC LIMIT $4::int`

/** Parameters: the same, 5 endpoint. */
export const listDeliveriesTo = (schema: string) => `
SELECT ${DELIVERY_COLUMNS.join(', ')}
FROM ${schema}.webhook_deliveries AS d
JOIN ${schema}.webhook_messages AS m ON m.account = d.account AND m.id = d.message
WHERE d.account = $1 AND d.endpoint = $5::uuid AND (d.message, d.endpoint) < (coalesce($2::uuid, ${LAST_ID}), coalesce($3::uuid, ${LAST_ID}))
ORDER BY d.message DESC, d.endpoint DESC LIMIT $4::int`

/** Parameters: the same, 5 endpoint or NULL, 6 message. */
export const listDeliveriesOf = (schema: string) => `
SELECT ${DELIVERY_COLUMNS.join(', ')}
FROM ${schema}.webhook_deliveries AS d
JOIN ${schema}.webhook_messages AS m ON m.account = d.account AND m.id = d.message
WHERE d.account = $1 AND d.message = $6::uuid AND ($5::uuid IS NULL OR d.endpoint = $5::uuid)
  AND (d.message, d.endpoint) < (coalesce($2::uuid, ${LAST_ID}), coalesce($3::uuid, ${LAST_ID}))
ORDER BY d.message DESC, d.endpoint DESC LIMIT $4::int`

export const listAttempts = (schema: string) => `
SELECT ${DELIVERY_ATTEMPT_COLUMNS.join(', ')} FROM ${schema}.webhook_attempts
WHERE account = $1 AND endpoint = $2::uuid AND message = $3::uuid ORDER BY fence DESC LIMIT $4::int`

/** A message that came in is noted together with its job, or neither is. Parameters: 1-3 account, source and message id; 4 job id, 5 job,
 * 6 payload. */
export const receiveMessage = (schema: string) => `
WITH noted AS (
  INSERT INTO ${schema}.inbox (account, source, message_id) VALUES ($1, $2, $3)
  ON CONFLICT (account, source, message_id) DO NOTHING
  RETURNING account
)
INSERT INTO ${schema}.jobs (account, id, job, payload, run_at)
SELECT account, $4::uuid, $5::text, $6::text, clock_timestamp() FROM noted
RETURNING id`
