/** What is written in the transactions of others. */

/** Refused outside of a transaction. What is inserted behind it waits for the same tables. */
export const lockEvents = (schema: string) => `LOCK TABLE ${schema}.events IN ACCESS SHARE MODE`
export const lockJobs = (schema: string) => `LOCK TABLE ${schema}.jobs IN ACCESS SHARE MODE`

/** An event of no aggregate. Parameters: 1 account, 2 id, 3 lane, 4 type, 5 payload. */
export const insertEvent = (schema: string) => `
WITH event AS (
  INSERT INTO ${schema}.events (account, id, type, payload) VALUES ($1, $2::uuid, $4, $5)
  RETURNING account, id, emitted_at
)
INSERT INTO ${schema}.fresh (lane, account, id, emitted_at)
SELECT $3::smallint, account, id, emitted_at FROM event`

/**
 * One event in the order of its aggregate. The counter's row stays locked until the transaction ends: the transaction that comes
 * next gets the next number, and commits later. Parameters: as above, 6 aggregate.
 */
export const insertEventInOrder = (schema: string) => `
WITH raised AS (
  INSERT INTO ${schema}.aggregates AS a (account, name, last) VALUES ($1::text, $6::text, 1)
  ON CONFLICT (account, name) DO UPDATE SET last = a.last + 1
  RETURNING last
),
event AS (
  INSERT INTO ${schema}.events (account, id, type, payload, aggregate, sequence)
  SELECT $1::text, $2::uuid, $4::text, $5::text, $6::text, last FROM raised
  RETURNING account, id, emitted_at
)
INSERT INTO ${schema}.fresh (lane, account, id, emitted_at)
SELECT $3::smallint, account, id, emitted_at FROM event`

/**
 * Many events of one account. Counters are raised in the order of their names, so that two transactions that emit
 * for the same aggregates do not wait for each other in a circle; and what is fresh is inserted in the order of
 * the events, because that is the order in which positions are drawn.
 * Parameters: 1 account; arrays, one element an event: 2 ids, 3 lanes, 4 types, 5 payloads, 6 aggregates ('' for none: a role may
 * have the setting that makes a text of NULL), 7 how many of its aggregate come behind it; one element an aggregate: 8 names in order, 9 how many events it has.
 */
export const insertEvents = (schema: string) => `
WITH raised AS MATERIALIZED (
  INSERT INTO ${schema}.aggregates AS a (account, name, last)
  SELECT $1::text, name, count FROM unnest($8::text[], $9::bigint[]) AS g (name, count)
  ON CONFLICT (account, name) DO UPDATE SET last = a.last + EXCLUDED.last
  RETURNING name, last
),
numbered AS MATERIALIZED (
  SELECT g.id, g.lane, g.type, g.payload, nullif(g.aggregate, '') AS aggregate, g.place,
    r.last - g.behind AS sequence, clock_timestamp() AS emitted_at
  FROM unnest($2::uuid[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
    WITH ORDINALITY AS g (id, lane, type, payload, aggregate, behind, place)
  LEFT JOIN raised AS r ON r.name = g.aggregate
),
written AS (
  INSERT INTO ${schema}.events (account, id, type, payload, aggregate, sequence, emitted_at)
  SELECT $1::text, id, type, payload, aggregate, sequence, emitted_at FROM numbered
)
INSERT INTO ${schema}.fresh (lane, account, id, emitted_at)
SELECT lane, $1::text, id, emitted_at FROM numbered ORDER BY place`

/** Parameters: 1 account; arrays: 2 ids, 3 jobs, 4 keys ('' for none), 5 payloads, 6 delays in ms. */
export const insertJobs = (schema: string) => `
INSERT INTO ${schema}.jobs (account, id, job, key, payload, run_at)
SELECT $1::text, g.id, g.job, nullif(g.key, ''), g.payload, clock_timestamp() + g.delay_ms * interval '1 millisecond'
FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::float8[]) AS g (id, job, key, payload, delay_ms)
ON CONFLICT (account, job, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id::text AS id`

export const insertMessage = (schema: string) => `
INSERT INTO ${schema}.inbox (account, source, message_id) VALUES ($1, $2, $3)
ON CONFLICT (account, source, message_id) DO NOTHING
RETURNING 1`
