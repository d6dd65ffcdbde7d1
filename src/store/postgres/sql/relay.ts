/** How events get from their table to their destinations. Over all accounts, so nothing is locked to be looked at. */
import { ageOf, EVENT_COLUMNS, interval } from './columns.ts'

/**
 * Every row is found by an index: these tables are empty at first, and a plan that was made then, and reads all of
 * a table, would be used for a long while after. And NULL in an array is none: a role may have the setting that makes a text of it.
 */
export const PLAN_BY_INDEX = `
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('array_nulls', 'on', true)`

/**
 * For what may be lost when the server crashes, because it is then only done again: a batch is made again, a lane is
 * taken again, and events are delivered once more. What is lost is the newest, so a cursor never stands in a batch
 * that is gone. How a job ended is waited for.
 */
export const DO_NOT_WAIT = `SELECT set_config('synchronous_commit', 'off', true)`

/** A new destination begins behind the last batch: with what no destination was given yet. */
export const registerDestinations = (schema: string) => `
INSERT INTO ${schema}.cursors (destination, lane, batch, place)
SELECT d.name, l.lane, l.last_batch,
  coalesce((SELECT size FROM ${schema}.batches WHERE lane = l.lane AND number = l.last_batch), 0)
FROM unnest($1::text[]) AS d (name) CROSS JOIN ${schema}.lanes AS l
ON CONFLICT (destination, lane) DO NOTHING`

export const forgetCursors = (schema: string) => `DELETE FROM ${schema}.cursors WHERE destination = $1`
export const forgetHeld = (schema: string) => `DELETE FROM ${schema}.held WHERE destination = $1`

/**
 * Puts new events of all lanes into one batch a lane. The number of the last batch decides: of two that do this at
 * once, the second finds another number than it has seen, and does nothing in that lane. What a snapshot shows of
 * an aggregate has no gap, because its counter was locked, and lower positions go first: so the order of batches
 * is the order of each aggregate. Parameter: 1 events a batch.
 */
export const makeBatches = (schema: string) => `
WITH due AS MATERIALIZED (
  SELECT l.lane, l.last_batch, (
    SELECT max(position) FROM (
      SELECT position FROM ${schema}.fresh WHERE lane = l.lane ORDER BY position LIMIT $1::int
    ) AS next
  ) AS until
  FROM ${schema}.lanes AS l
),
numbered AS MATERIALIZED (
  UPDATE ${schema}.lanes AS l SET last_batch = l.last_batch + 1
  FROM due
  WHERE l.lane = due.lane AND l.last_batch = due.last_batch AND due.until IS NOT NULL
  RETURNING l.lane, l.last_batch, due.until
),
taken AS (
  DELETE FROM ${schema}.fresh AS f
  USING numbered AS n
  WHERE f.lane = n.lane AND f.position <= n.until
  RETURNING f.lane, n.last_batch, f.position, f.account, f.id, f.emitted_at
)
INSERT INTO ${schema}.batches (lane, number, size, oldest_at, accounts, ids)
SELECT lane, last_batch, count(*), min(emitted_at), array_agg(account ORDER BY position),
  array_agg(id ORDER BY position)
FROM taken GROUP BY lane, last_batch
RETURNING size`

/**
 * Takes lanes of a destination that no relay has and that have something to deliver; any of them, so that relays side
 * by side do not all want the same. Parameters: 1 destination, 2 claim id, 3 lease in ms, 4 lanes at most.
 */
export const takeLanes = (schema: string) => `
WITH free AS MATERIALIZED (
  SELECT c.lane FROM ${schema}.cursors AS c
  WHERE c.destination = $1 AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp()) AND (
    EXISTS (
      SELECT 1 FROM ${schema}.batches AS b
      WHERE b.lane = c.lane AND b.number >= c.batch AND (b.number > c.batch OR b.size > c.place)
    ) OR EXISTS (
      SELECT 1 FROM ${schema}.held AS h
      WHERE h.destination = c.destination AND h.lane = c.lane AND h.try_at <= now()
    )
  )
  ORDER BY random() LIMIT $4::int
)
UPDATE ${schema}.cursors AS c
SET claim_id = $2::uuid, lease_until = clock_timestamp() + ${interval('$3')}
FROM free
WHERE c.destination = $1 AND c.lane = free.lane
  AND (c.lease_until IS NULL OR c.lease_until <= clock_timestamp())
RETURNING c.lane, c.batch, c.place`

/**
 * What comes next in the lanes that were just taken. A statement of its own, with a snapshot of its own: what the
 * owner before has left, above all what it held, has to be seen.
 * Parameters: 1 destination, 2 claim id, 3 events of a lane at most.
 */
export const readLanes = (schema: string) => `
SELECT c.lane, k.number, k.place, (
    any_held AND e.aggregate IS NOT NULL AND EXISTS (
      SELECT 1 FROM ${schema}.held AS h
      WHERE h.account = e.account AND h.destination = c.destination AND h.aggregate = e.aggregate
        AND h.parked_at IS NULL
    )
  ), ${EVENT_COLUMNS.join(', ')}
FROM ${schema}.cursors AS c
CROSS JOIN LATERAL (
  SELECT EXISTS (
    SELECT 1 FROM ${schema}.held AS h
    WHERE h.destination = c.destination AND h.lane = c.lane AND h.try_at IS NOT NULL
  ) AS any_held OFFSET 0
) AS trouble
CROSS JOIN LATERAL (
  SELECT b.number, u.account, u.id, u.place
  FROM (
    SELECT number, accounts, ids FROM ${schema}.batches
    WHERE lane = c.lane AND number >= c.batch AND (number > c.batch OR size > c.place)
    ORDER BY number LIMIT $3::int
  ) AS b CROSS JOIN LATERAL unnest(b.accounts, b.ids) WITH ORDINALITY AS u (account, id, place)
  WHERE b.number > c.batch OR u.place > c.place
  ORDER BY b.number, u.place LIMIT $3::int
) AS k
LEFT JOIN LATERAL (
  SELECT * FROM ${schema}.events WHERE account = k.account AND id = k.id OFFSET 0
) AS e ON true
WHERE c.destination = $1 AND c.claim_id = $2::uuid
ORDER BY c.lane, k.number, k.place`

/**
 * Those held in the lanes that were just taken whose time has come, each with those behind it: they may go with it.
 * Parameters: as above, 3 events at most.
 */
export const readHeld = (schema: string) => `
SELECT h.lane, k.batch, k.tries, k.refusals, ${EVENT_COLUMNS.join(', ')}
FROM ${schema}.cursors AS c
JOIN ${schema}.held AS h ON h.destination = c.destination AND h.lane = c.lane AND h.try_at <= now()
CROSS JOIN LATERAL (
  SELECT h.id, h.batch, h.tries, h.refusals, 0 AS step
  UNION ALL (
    SELECT f.id, f.batch, f.tries, f.refusals, f.sequence FROM ${schema}.held AS f
    WHERE f.account = h.account AND f.destination = h.destination AND f.aggregate = h.aggregate
      AND f.parked_at IS NULL AND f.sequence > h.sequence
    ORDER BY f.sequence LIMIT $3::int
  )
) AS k
JOIN ${schema}.events AS e ON e.account = h.account AND e.id = k.id
WHERE c.destination = $1 AND c.claim_id = $2::uuid
ORDER BY h.try_at, h.id, k.step LIMIT $3::int`

/**
 * The end of a round, first of all: a relay that has lost a lane finds no row here, and one that has not holds the row's
 * lock for the statements behind it. Parameters: 1 destination, 2 claim id; arrays: 3 lanes, 4 batches, 5 places.
 */
export const moveCursors = (schema: string) => `
UPDATE ${schema}.cursors AS c SET batch = k.batch, place = k.place, lease_until = NULL
FROM unnest($3::smallint[], $4::bigint[], $5::int[]) AS k (lane, batch, place)
WHERE c.destination = $1 AND c.claim_id = $2::uuid AND c.lane = k.lane
RETURNING c.lane`

/**
 * Parameters: 1 destination, 2 claim id; arrays: 3 accounts, 4 ids, 5 lanes, 6 batches, 7 aggregates, 8 sequences,
 * 9 tries, 10 refusals, 11 waits in ms, 12 whether parked, 13 codes, 14 messages.
 */
export const insertHeld = (schema: string) => `
INSERT INTO ${schema}.held (account, destination, id, lane, batch, aggregate, sequence, tries, refusals, try_at,
  parked_at, error_code, error_message)
SELECT k.account, $1, k.id, k.lane, k.batch, k.aggregate, k.sequence, k.tries, k.refusals,
  clock_timestamp() + k.wait_ms * interval '1 millisecond', CASE WHEN k.parked THEN clock_timestamp() END, k.code, k.message
FROM unnest($3::text[], $4::uuid[], $5::smallint[], $6::bigint[], $7::text[], $8::bigint[], $9::int[], $10::int[],
  $11::float8[], $12::boolean[], $13::text[], $14::text[]) AS k (account, id, lane, batch, aggregate, sequence,
  tries, refusals, wait_ms, parked, code, message)
JOIN ${schema}.cursors AS c ON c.destination = $1 AND c.lane = k.lane AND c.claim_id = $2::uuid
ON CONFLICT (account, destination, id) DO NOTHING`

/** The same parameters, for those that are held already. */
export const updateHeld = (schema: string) => `
UPDATE ${schema}.held AS h
SET tries = k.tries, refusals = k.refusals, try_at = clock_timestamp() + k.wait_ms * interval '1 millisecond',
  parked_at = CASE WHEN k.parked THEN clock_timestamp() END, error_code = k.code, error_message = k.message
FROM unnest($3::text[], $4::uuid[], $5::smallint[], $6::bigint[], $7::text[], $8::bigint[], $9::int[], $10::int[],
  $11::float8[], $12::boolean[], $13::text[], $14::text[]) AS k (account, id, lane, batch, aggregate, sequence,
  tries, refusals, wait_ms, parked, code, message)
JOIN ${schema}.cursors AS c ON c.destination = $1 AND c.lane = k.lane AND c.claim_id = $2::uuid
WHERE h.account = k.account AND h.destination = $1 AND h.id = k.id AND h.parked_at IS NULL`

/** Parameters: 1 destination, 2 claim id; arrays: 3 accounts, 4 ids. */
export const deleteHeld = (schema: string) => `
DELETE FROM ${schema}.held AS h
USING unnest($3::text[], $4::uuid[]) AS k (account, id), ${schema}.cursors AS c
WHERE h.account = k.account AND h.destination = $1 AND h.id = k.id AND c.destination = $1 AND c.lane = h.lane
  AND c.claim_id = $2::uuid`

/** The event that is first in its aggregate now may be tried at once. Parameters: 1 destination; arrays: 2 accounts, 3 names. */
export const promoteHeld = (schema: string) => `
UPDATE ${schema}.held AS h SET try_at = clock_timestamp()
FROM unnest($2::text[], $3::text[]) AS k (account, aggregate)
WHERE h.account = k.account AND h.destination = $1 AND h.aggregate = k.aggregate AND h.parked_at IS NULL
  AND h.try_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM ${schema}.held AS o
    WHERE o.account = h.account AND o.destination = $1 AND o.aggregate = h.aggregate AND o.parked_at IS NULL
      AND o.sequence < h.sequence
  )`

export const readLag = (schema: string) => `
WITH known AS (SELECT DISTINCT destination FROM ${schema}.cursors),
waiting AS (
  SELECT c.destination, b.size - CASE WHEN b.number = c.batch THEN c.place ELSE 0 END AS count, b.oldest_at
  FROM ${schema}.cursors AS c JOIN ${schema}.batches AS b
    ON b.lane = c.lane AND b.number >= c.batch AND (b.number > c.batch OR b.size > c.place)
  UNION ALL
  SELECT h.destination, 1, e.emitted_at
  FROM ${schema}.held AS h JOIN ${schema}.events AS e ON e.account = h.account AND e.id = h.id
  WHERE h.parked_at IS NULL
  UNION ALL
  SELECT k.destination, n.count, n.oldest_at
  FROM known AS k CROSS JOIN (
    SELECT count(*) AS count, min(emitted_at) AS oldest_at FROM ${schema}.fresh
  ) AS n
)
SELECT k.destination, coalesce(sum(w.count), 0), ${ageOf('min(oldest_at)')}, (
    SELECT count(*) FROM ${schema}.held AS h WHERE h.destination = k.destination AND h.parked_at IS NOT NULL
  )
FROM known AS k LEFT JOIN waiting AS w ON w.destination = k.destination
GROUP BY k.destination ORDER BY k.destination`

/**
 * Deletes batches that every destination has passed long ago, with their events. One with a held event stays.
 * Parameters: 1 retention in ms, 2 batches at most.
 */
export const deleteBatches = (schema: string) => `
WITH old AS MATERIALIZED (
  SELECT b.lane, b.number FROM ${schema}.batches AS b
  WHERE b.made_at <= now() - ${interval('$1')}
    AND NOT EXISTS (
      SELECT 1 FROM ${schema}.cursors AS c
      WHERE c.lane = b.lane AND (c.batch < b.number OR (c.batch = b.number AND c.place < b.size))
    )
    AND NOT EXISTS (SELECT 1 FROM ${schema}.held AS h WHERE h.lane = b.lane AND h.batch = b.number)
  ORDER BY b.lane, b.number LIMIT $2::int
),
gone AS MATERIALIZED (
  DELETE FROM ${schema}.batches AS b USING old WHERE b.lane = old.lane AND b.number = old.number
  RETURNING b.accounts, b.ids
),
emptied AS (
  DELETE FROM ${schema}.events AS e
  USING gone CROSS JOIN LATERAL unnest(gone.accounts, gone.ids) AS k (account, id)
  WHERE e.account = k.account AND e.id = k.id
)
SELECT count(*) FROM gone`

/** Parameters: 1 retention in ms, 2 messages at most. */
export const deleteMessages = (schema: string) => `
WITH old AS MATERIALIZED (
  SELECT account, source, message_id FROM ${schema}.inbox
  WHERE seen_at <= now() - ${interval('$1')} ORDER BY seen_at LIMIT $2::int
),
gone AS (
  DELETE FROM ${schema}.inbox AS i USING old
  WHERE i.account = old.account AND i.source = old.source AND i.message_id = old.message_id
  RETURNING 1
)
SELECT count(*) FROM gone`

/** What is not tried any more. Parameters: 1 how many at most; behind what: 2 its time in microseconds (NULL: from the start), 3 its id, 4 its destination. */
export const readParked = (schema: string) => `
SELECT account, id, destination, name, code, message, at_us FROM (
  SELECT h.account, h.id, h.destination, e.type AS name, h.error_code AS code, h.error_message AS message,
    (extract(epoch FROM h.parked_at) * 1000000)::bigint AS at_us
  FROM ${schema}.held AS h JOIN ${schema}.events AS e ON e.account = h.account AND e.id = h.id
  WHERE h.parked_at IS NOT NULL
  UNION ALL
  SELECT account, id, NULL, job, error_code, error_message, (extract(epoch FROM parked_at) * 1000000)::bigint
  FROM ${schema}.jobs WHERE parked_at IS NOT NULL
) AS p
WHERE $2::bigint IS NULL OR (at_us, id, coalesce(destination, '')) > ($2::bigint, $3::uuid, $4::text)
ORDER BY at_us, id, coalesce(destination, '') LIMIT $1::int`

/** Parameters: 1 account, 2 id. */
export const retryHeld = (schema: string) => `
UPDATE ${schema}.held SET parked_at = NULL, try_at = clock_timestamp(), tries = 0, refusals = 0
WHERE account = $1 AND id = $2::uuid AND parked_at IS NOT NULL RETURNING 1`
