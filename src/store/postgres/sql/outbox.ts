/** What is written in the transactions of others. */

/** An event of no aggregate. Parameters: 1 account, 2 id, 3 lane, 4 type, 5 payload. */
export const insertEvent = (schema: string) => `
INSERT INTO ${schema}.events (account, id, lane, type, payload)
VALUES ($1, $2, $3::smallint, $4, $5)`

/**
 * One event in the order of its aggregate. The counter's row stays locked until the transaction ends: whoever comes
 * next gets the next number, and commits later. Parameters: as above, 6 aggregate.
 */
export const insertEventInOrder = (schema: string) => `
WITH raised AS (
  INSERT INTO ${schema}.aggregates AS a (account, name, last) VALUES ($1::text, $6::text, 1)
  ON CONFLICT (account, name) DO UPDATE SET last = a.last + 1
  RETURNING last
)
INSERT INTO ${schema}.events (account, id, lane, type, payload, aggregate, sequence)
SELECT $1::text, $2::text, $3::smallint, $4::text, $5::text, $6::text, last FROM raised`

/**
 * Many events of one account. Counters are raised in the order of their names, so that two transactions that emit
 * for the same aggregates do not wait for each other in a circle; and rows are inserted in their own order, because
 * that is the order in which they draw their positions.
 * Parameters: 1 account; arrays: 2 ids, 3 lanes, 4 types, 5 payloads, 6 aggregates.
 */
export const insertEvents = (schema: string) => `
WITH given AS MATERIALIZED (
  SELECT * FROM unnest($2::text[], $3::smallint[], $4::text[], $5::text[], $6::text[])
    WITH ORDINALITY AS g (id, lane, type, payload, aggregate, place)
),
raised AS MATERIALIZED (
  INSERT INTO ${schema}.aggregates AS a (account, name, last)
  SELECT $1::text, aggregate, count(*) FROM given WHERE aggregate IS NOT NULL GROUP BY aggregate ORDER BY aggregate
  ON CONFLICT (account, name) DO UPDATE SET last = a.last + EXCLUDED.last
  RETURNING name, last
)
INSERT INTO ${schema}.events (account, id, lane, type, payload, aggregate, sequence)
SELECT $1::text, g.id, g.lane, g.type, g.payload, g.aggregate,
  r.last - count(r.last) OVER (PARTITION BY g.aggregate) + row_number() OVER (PARTITION BY g.aggregate ORDER BY g.place)
FROM given AS g LEFT JOIN raised AS r ON r.name = g.aggregate
ORDER BY g.place`

/** Parameters: 1 account; arrays: 2 ids, 3 jobs, 4 keys, 5 payloads, 6 delays in ms. */
export const insertJobs = (schema: string) => `
INSERT INTO ${schema}.jobs (account, id, job, key, payload, run_at)
SELECT $1::text, g.id, g.job, g.key, g.payload, clock_timestamp() + g.delay_ms * interval '1 millisecond'
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::float8[]) AS g (id, job, key, payload, delay_ms)
ON CONFLICT (account, job, key) WHERE key IS NOT NULL DO NOTHING
RETURNING id`

export const insertMessage = (schema: string) => `
INSERT INTO ${schema}.inbox (account, source, message_id) VALUES ($1, $2, $3)
ON CONFLICT (account, source, message_id) DO NOTHING
RETURNING 1`
