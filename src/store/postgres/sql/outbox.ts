/**
 * What is written in the transactions of others. Each statement is told which one it belongs to (see `isInside`), and writes nothing elsewhere.
 */
import { isInside } from './columns.ts'

/**
 * An event of no aggregate. Gives no row where it is not in its transaction. Parameters: 1 account, 2 id, 3 lane, 4 type, 5 payload, 6 transaction.
 */
export const insertEvent = (schema: string) => `
WITH event AS (
  INSERT INTO ${schema}.events (account, id, type, payload)
  SELECT $1::text, $2::uuid, $4::text, $5::text WHERE ${isInside('$6')}
  RETURNING account, id, emitted_at
)
INSERT INTO ${schema}.fresh (lane, account, id, emitted_at)
SELECT $3::smallint, account, id, emitted_at FROM event
RETURNING 1`

/**
 * One event in the order of its aggregate. The counter's row stays locked until the transaction ends: the transaction that comes
 * next gets the next number, and commits later. Parameters: as above, 7 aggregate.
 */
export const insertEventInOrder = (schema: string) => `
WITH raised AS (
  INSERT INTO ${schema}.aggregates AS a (account, name, last)
  SELECT $1::text, $7::text, 1 WHERE ${isInside('$6')}
  ON CONFLICT (account, name) DO UPDATE SET last = a.last + 1
  RETURNING last
),
event AS (
  INSERT INTO ${schema}.events (account, id, type, payload, aggregate, sequence)
  SELECT $1::text, $2::uuid, $4::text, $5::text, $7::text, last FROM raised
  RETURNING account, id, emitted_at
)
INSERT INTO ${schema}.fresh (lane, account, id, emitted_at)
SELECT $3::smallint, account, id, emitted_at FROM event
RETURNING 1`

/**
 * Many events of one account. Counters are raised in the order of their names, so that two transactions that emit
 * for the same aggregates do not wait for each other in a circle; and what is fresh is inserted in the order of
 * the events, because that is the order in which positions are drawn.
 * Parameters: 1 account; arrays, one element an event: 2 ids, 3 lanes, 4 types, 5 payloads, 6 aggregates ('' for none: a role may
 * have the setting that makes a text of NULL), 7 how many of its aggregate come behind it; one element an aggregate: 8 names in order, 9 how many events it has; 10 transaction.
 * Gives no row where it is not in its transaction.
 */
export const insertEvents = (schema: string) => `
WITH raised AS MATERIALIZED (
  INSERT INTO ${schema}.aggregates AS a (account, name, last)
  SELECT $1::text, name, count FROM unnest($8::text[], $9::bigint[]) AS g (name, count)
  WHERE ${isInside('$10')}
  ON CONFLICT (account, name) DO UPDATE SET last = a.last + EXCLUDED.last
  RETURNING name, last
),
numbered AS MATERIALIZED (
  SELECT g.id, g.lane, g.type, g.payload, nullif(g.aggregate, '') AS aggregate, g.place,
    r.last - g.behind AS sequence, clock_timestamp() AS emitted_at
  FROM unnest($2::uuid[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
    WITH ORDINALITY AS g (id, lane, type, payload, aggregate, behind, place)
  LEFT JOIN raised AS r ON r.name = g.aggregate
  WHERE ${isInside('$10')}
),
written AS (
  INSERT INTO ${schema}.events (account, id, type, payload, aggregate, sequence, emitted_at)
  SELECT $1::text, id, type, payload, aggregate, sequence, emitted_at FROM numbered
)
INSERT INTO ${schema}.fresh (lane, account, id, emitted_at)
SELECT lane, $1::text, id, emitted_at FROM numbered ORDER BY place
RETURNING 1`

/**
 * Gives the ids of the jobs that were not there; NULL where it is not in its transaction.
 * Parameters: 1 account; arrays: 2 ids, 3 jobs, 4 keys ('' for none), 5 payloads, 6 delays in ms; 7 transaction.
 */
export const insertJobs = (schema: string) => `
WITH staged AS (
  INSERT INTO ${schema}.jobs (account, id, job, key, payload, run_at)
  SELECT $1::text, g.id, g.job, nullif(g.key, ''), g.payload, clock_timestamp() + g.delay_ms * interval '1 millisecond'
  FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::float8[]) AS g (id, job, key, payload, delay_ms)
  WHERE ${isInside('$7')}
  ON CONFLICT (account, job, key) WHERE key IS NOT NULL DO NOTHING
  RETURNING id
)
SELECT id::text AS id FROM staged
UNION ALL SELECT NULL WHERE NOT ${isInside('$7')}`

/**
 * Says `noted`, or `seen` of a message that was there, or `ended` where it is not in its transaction.
 * Parameters: 1 account, 2 source, 3 message id, 4 transaction.
 */
export const insertMessage = (schema: string) => `
WITH noted AS (
  INSERT INTO ${schema}.inbox (account, source, message_id)
  SELECT $1::text, $2::text, $3::text WHERE ${isInside('$4')}
  ON CONFLICT (account, source, message_id) DO NOTHING
  RETURNING 1
)
SELECT CASE WHEN NOT ${isInside('$4')} THEN 'ended' WHEN EXISTS (SELECT FROM noted) THEN 'noted' ELSE 'seen' END AS said`
